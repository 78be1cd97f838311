"""Exacta: exactly once, in exact order.

The root is lazy: a Spark worker that imports a part of this package loads neither the engine nor an event loop.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exacta.testing import Broker as Broker

__all__ = ["Broker", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "Broker":
        from exacta.testing import Broker

        return Broker
    if name == "__version__":
        from importlib.metadata import version

        return version("exacta")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
