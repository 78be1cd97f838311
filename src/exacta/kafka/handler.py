"""The facts about an API that the connection needs: the `HANDLER` at the end of each handler module."""

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from exacta.config.configuration import Configuration
from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.needs import Needs
from exacta.kafka.parts import Parts
from exacta.protocol.kafka.apis import API, ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.schema import Buffer, Message

Reply: TypeAlias = Callable[[Message | None], None]
Handle: TypeAlias = Callable[[Broker, Any, RequestContext, Reply], None]
Refused: TypeAlias = Callable[[Any, ErrorCode, int], Message | None]
AnswerUnserved: TypeAlias = Callable[[RequestContext, memoryview], list[Buffer] | None]

FIRST_RELEASE = "0.1"


class Handler(Struct, frozen=True, kw_only=True):
    """One API as it is served here. Versions are inclusive."""

    key: ApiKey
    min_version: int
    max_version: int
    needs: Needs
    """The operations on resources that a request needs of its client."""
    handle: Handle
    parts: tuple[Parts, ...] = ()
    """The arrays by which a long request may be divided, the first that it has. Without one it is served in one step.
    """
    refused: Refused | None = None
    """A function that makes the answer which refuses all elements of a request with a code, in a version. It returns
    None where the request wants no answer."""
    plain_error: Callable[..., Message] | None = None
    """A function that makes the answer from an error code alone, where every version has room for one."""
    answer_unserved: AnswerUnserved | None = None
    """A function that encodes the answer to a version outside the range; None closes the connection, as Kafka does."""
    lowest_advertised: int | None = None
    """The lowest version that clients are told of, where that is not the lowest one that is served."""
    highest_advertised: Callable[[Configuration], int] | None = None
    """The highest version that clients are told of, where the configuration may offer less than is served."""
    since: str = FIRST_RELEASE
    """The version of Exacta that served these versions first."""
    newer: str = ""
    """The subject of the versions that the codec knows and that are not served; empty where there are none."""

    @property
    def name(self) -> str:
        """Kafka's name of the API."""
        return API[self.key].name

    @property
    def advertised_min_version(self) -> int:
        """The lowest version that clients are told of."""
        return self.min_version if self.lowest_advertised is None else self.lowest_advertised

    def advertised_max_version(self, configuration: Configuration) -> int:
        """Return the highest version that clients are told of."""
        return self.max_version if self.highest_advertised is None else self.highest_advertised(configuration)
