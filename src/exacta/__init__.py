"""Exacta: exactly once, in exact order.

The root is lazy: a Spark worker that imports a part of this package loads neither the engine nor an event loop.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exacta import spark as spark
    from exacta.client.errors import ClientError
    from exacta.client.joint import NotJoined
    from exacta.client.joint import join_transaction as join_transaction
    from exacta.config.errors import ConfigurationError
    from exacta.databases.errors import OutcomeUnknown, PartlyCommitted, TakenOver, TwoPhaseError
    from exacta.databases.postgres import Postgres as Postgres
    from exacta.databases.sqlite import Sqlite as Sqlite
    from exacta.databases.two_phase import two_phase as two_phase
    from exacta.server.errors import ServerError
    from exacta.testing import Broker as Broker
    from exacta.transform.recognition import exactly_once as exactly_once

    __version__: str

__all__ = [
    "Broker",
    "ClientError",
    "ConfigurationError",
    "NotJoined",
    "OutcomeUnknown",
    "PartlyCommitted",
    "Postgres",
    "ServerError",
    "Sqlite",
    "TakenOver",
    "TwoPhaseError",
    "__version__",
    "exactly_once",
    "join_transaction",
    "spark",
    "two_phase",
]

_HOMES = {
    "Broker": "exacta.testing",
    "ClientError": "exacta.client.errors",
    "ConfigurationError": "exacta.config.errors",
    "NotJoined": "exacta.client.joint",
    "OutcomeUnknown": "exacta.databases.errors",
    "PartlyCommitted": "exacta.databases.errors",
    "Postgres": "exacta.databases.postgres",
    "ServerError": "exacta.server.errors",
    "Sqlite": "exacta.databases.sqlite",
    "TakenOver": "exacta.databases.errors",
    "TwoPhaseError": "exacta.databases.errors",
    "exactly_once": "exacta.transform.recognition",
    "two_phase": "exacta.databases.two_phase",
    "join_transaction": "exacta.client.joint",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "spark":
        return import_module("exacta.spark")
    if name == "__version__":
        from exacta.release import release

        return release()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
