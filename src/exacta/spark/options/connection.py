"""The options that say how the cluster is reached; the same for reading and writing."""

from __future__ import annotations

from exacta.client.routing import BadBootstrap, parse_bootstrap
from exacta.spark.options.parsing import Option, OptionError


def _bootstrap(name: str, value: str) -> str:
    try:
        parse_bootstrap(value)
    except BadBootstrap as error:
        raise OptionError(f"option '{name}': {error}") from error
    return value


CONNECTION = (
    Option(
        name="kafka.bootstrap.servers",
        field="bootstrap",
        parse=_bootstrap,
        default="needed",
        about="`host:port,host:port`",
    ),
)
