"""A `.properties` file as Kafka's command-line tools take it with `--command-config`: how a cluster is reached.

Owns the syntax of such files (java.util.Properties) as far as Kafka's are written in it, and that they say the same as
options of the same names. Keys that are not known are refused, like options; those of producers and consumers are taken
without effect.
"""

from __future__ import annotations

import re
from pathlib import Path

from exacta.client.security import Cluster
from exacta.spark.options.connection import CONNECTION, ConnectionOptions, judge_connection
from exacta.spark.options.kafka_clients import COMMON_REFUSED, HARMLESS_FOR_A_CONNECTION
from exacta.spark.options.parsing import OptionError, parse

_LINE = re.compile(r"((?:[^\\\s=:]|\\.)*)\s*[=:\s]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def cluster_of(bootstrap: str, file: Path | None, *, client_id: str) -> Cluster:
    """Return the cluster at `bootstrap`, reached as `file` says; raises `OptionError`."""
    given = {"kafka.bootstrap.servers": bootstrap, "kafka.client.id": client_id}
    if file is not None:
        try:
            text = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"'{file}' cannot be read: {error}") from error
        found = {key.removeprefix("kafka."): value for key, value in parse_properties(text).items()}
        given |= {f"kafka.{key}": value for key, value in found.items() if key != "bootstrap.servers"}
    parsed = parse(given, (*CONNECTION, *COMMON_REFUSED), "a connection", HARMLESS_FOR_A_CONNECTION)
    judge_connection(parsed, "a connection")
    return ConnectionOptions(**parsed.finished()).cluster


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
