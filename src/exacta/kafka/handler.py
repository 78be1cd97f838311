"""What the connection must know of an API: made from a handler module."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from msgspec import Struct

from exacta.config.configuration import Configuration
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.protocol.kafka.apis import API
from exacta.protocol.kafka.schema import Buffer, Message

Reply = Callable[[Message | None], None]
FIRST_RELEASE = "0.1"
Handle = Callable[[BrokerContext, Any, RequestContext, Reply], None]
AnswerUnserved = Callable[[RequestContext, memoryview], list[Buffer] | None]


class Handler(Struct, frozen=True, kw_only=True):
    """One API as served here. Versions are inclusive."""

    key: int
    name: str
    min_version: int
    max_version: int
    advertised_min_version: int
    advertised_max_version: Callable[[Configuration], int]
    """Where the configuration offers less than is served."""
    since: str
    """The version of Exacta that served these versions first."""
    newer: str
    """What the versions are about that the codec knows and that are not served; empty where there are none."""
    handle: Handle
    answer_unserved: AnswerUnserved | None
    """Encodes the answer to a version outside the range; None closes the connection, as Kafka does."""
    plain_error: Callable[..., Message] | None
    """Makes the answer from an error code alone, where every version has room for one."""


def handler_of(module: ModuleType) -> Handler:
    """Read a handler module: KEY, MIN_VERSION, MAX_VERSION, handle; NEWER and the rest where they differ."""
    api = API[module.KEY]
    return Handler(
        key=int(module.KEY),
        name=api.name,
        min_version=module.MIN_VERSION,
        max_version=module.MAX_VERSION,
        advertised_min_version=getattr(module, "ADVERTISED_MIN_VERSION", module.MIN_VERSION),
        advertised_max_version=getattr(module, "advertised_max_version", lambda configuration: module.MAX_VERSION),
        since=getattr(module, "SERVED_SINCE", FIRST_RELEASE),
        newer=getattr(module, "NEWER", ""),
        handle=module.handle,
        answer_unserved=getattr(module, "answer_unserved", None),
        plain_error=getattr(module, "PLAIN_ERROR", None),
    )
