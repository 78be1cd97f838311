"""Read how a cluster is reached from a `.properties` file, as Kafka's command-line tools do by `--command-config`.

A key means the same as the option of the same name. Keys that are not about the connection are passed over, as Kafka's
tools do, because one file often serves several tools.
"""

from collections.abc import Mapping
from pathlib import Path

from exacta.client.security import Cluster
from exacta.properties import parse_properties
from exacta.spark.options.connection import CONNECTION, ConnectionOptions, judge_connection
from exacta.spark.options.parsing import OptionError, parse


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
