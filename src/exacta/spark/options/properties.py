"""Read how a cluster is reached from a `.properties` file, as Kafka's command-line tools do by `--command-config`.

This module owns the syntax of such files (java.util.Properties) as far as Kafka's files use it. A key means the same as
the option of the same name. Keys that are not about the connection are passed over, as Kafka's tools do, because one
file often serves several tools.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from exacta.client.security import Cluster
from exacta.spark.options.connection import CONNECTION, ConnectionOptions, judge_connection
from exacta.spark.options.parsing import OptionError, parse

_LINE = re.compile(r"((?:[^\\\s=:]|\\.)*)\s*[=:\s]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(file: Path) -> dict[str, str]:
    """Return the keys and values of a `.properties` file; raises `OptionError` where it cannot be read."""
    try:
        return parse_properties(file.read_text())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise OptionError(f"'{file}' cannot be read: {reason}") from error


def cluster_by(bootstrap: str, properties: Mapping[str, str], *, client_id: str) -> tuple[Cluster, list[str]]:
    """Return the cluster at `bootstrap`, reached as these keys say, and those of them that were passed over.

    Raises `OptionError`.
    """
    known = {option.name.lower() for option in CONNECTION}
    passed_over: list[str] = []
    given = {"kafka.bootstrap.servers": bootstrap, "kafka.client.id": client_id}
    for key, value in properties.items():
        name = f"kafka.{key.removeprefix('kafka.')}"
        if name.lower() not in known:
            passed_over.append(key)
        elif name.lower() != "kafka.bootstrap.servers":
            given[name] = value
    parsed = parse(given, CONNECTION, "a connection")
    judge_connection(parsed, "a connection")
    return ConnectionOptions(**parsed.finished()).cluster, passed_over


def parse_properties(text: str) -> dict[str, str]:
    """Return the keys and values of a `.properties` text; a later key wins."""
    found: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        logical = line.lstrip()
        if not logical or logical[0] in "#!":
            continue
        # An odd number of backslashes at the end: the next line goes on.
        while (len(logical) - len(logical.rstrip("\\"))) % 2:
            logical = logical[:-1] + next(lines, "").lstrip()
        match = _LINE.fullmatch(logical)
        assert match is not None  # it matches anything
        found[_unescaped(match[1])] = _unescaped(match[2])
    return found


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 5 else _ESCAPED.get(m[1], m[1]), text)
