"""Exacta: exactly once, in exact order.

The root is lazy: a Spark worker that imports a part of this package loads neither the engine nor an event loop.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exacta import spark as spark
    from exacta.client.joint import join_transaction as join_transaction
    from exacta.config.configuration import ConfigurationError
    from exacta.server.errors import ServerError
    from exacta.testing import Broker as Broker

    __version__: str

__all__ = ["Broker", "ConfigurationError", "ServerError", "__version__", "join_transaction", "spark"]

_HOMES = {
    "Broker": "exacta.testing",
    "ConfigurationError": "exacta.config.configuration",
    "ServerError": "exacta.server.errors",
    "join_transaction": "exacta.client.joint",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "spark":
        return import_module("exacta.spark")
    if name == "__version__":
        from importlib.metadata import version

        return version("exacta")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
