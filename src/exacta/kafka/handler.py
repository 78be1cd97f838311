"""The declaration of an API: the `HANDLER` at the end of each handler module, and what follows from it."""

from collections.abc import Callable
from itertools import repeat
from typing import Any, TypeAlias

from msgspec import Struct

from exacta.config.configuration import Configuration
from exacta.front.broker import Broker
from exacta.kafka.at_follower import AtFollower
from exacta.kafka.coded_answers import NOTHING, Given, coded, has_array, has_room_in, refused
from exacta.kafka.context import RequestContext
from exacta.kafka.needs import Each, Needs, Whole
from exacta.kafka.parts import Parts
from exacta.protocol.kafka.apis import API, ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.schema import Buffer, Message

Reply: TypeAlias = Callable[[Message | None], None]
Handle: TypeAlias = Callable[[Broker, Any, RequestContext, Reply], None]
Refused: TypeAlias = Callable[[Any, ErrorCode, int], Message | None]
Hint: TypeAlias = Callable[[Broker, RequestContext, Any], None]
AnswerUnserved: TypeAlias = Callable[[RequestContext, memoryview], list[Buffer] | None]

FIRST_RELEASE = "0.1"


class _OfApi(Struct, frozen=True):
    key: ApiKey


class Handler(_OfApi, frozen=True, kw_only=True):
    """One API as it is served here."""

    versions: tuple[int, int]
    """The first and the last version that is served."""
    needs: Needs
    """The operations on resources that a request needs of its client."""
    at_follower: AtFollower
    """The treatment of a request at a broker that does not lead the log."""
    handle: Handle
    parts: tuple[Parts, ...] = ()
    """The arrays by which a long request may be divided, the first that it has. Without one it is served in one step.
    """
    refusal: Given = NOTHING
    """The fields of refusals that do not have their defaults."""
    refused: Refused | None = None
    """A function that makes the answer which refuses all elements of a request with a code, in a version, where that
    does not follow from the schema (`coded_answers.py`). It returns None where the request wants no answer."""
    hint: Hint | None = None
    """A function that tells, in the refusal of a follower, who leads (KIP-951)."""
    always_plain: bool = False
    """True: the error code alone is an answer in every version, also in those that have no room for it."""
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
    def min_version(self) -> int:
        """The lowest version that is served."""
        return self.versions[0]

    @property
    def max_version(self) -> int:
        """The highest version that is served."""
        return self.versions[1]

    @property
    def advertised_min_version(self) -> int:
        """The lowest version that clients are told of."""
        return self.min_version if self.lowest_advertised is None else self.lowest_advertised

    def advertised_max_version(self, configuration: Configuration) -> int:
        """Return the highest version that clients are told of."""
        return self.max_version if self.highest_advertised is None else self.highest_advertised(configuration)

    # --- refusals -----------------------------------------------------------------------------------------------------

    @property
    def can_refuse(self) -> bool:
        """Return whether an error code can answer every request of the API."""
        return self._is_plain or any(isinstance(need, Each | Whole) for need in self.needs)

    @property
    def _is_plain(self) -> bool:
        return self.always_plain or has_room_in(API[self.key].response, self.versions)

    def plain_error(self, code: ErrorCode) -> Message | None:
        """Return the answer that is an error code alone; None where not every version has room for one."""
        return API[self.key].response(error_code=code, **self.refusal) if self._is_plain else None

    def refusal_of_all(self, request: Any, code: ErrorCode, version: int) -> Message | None:
        """Return the answer that refuses a request as a whole; None where the client wants no answer."""
        plain = self.plain_error(code)
        if plain is not None:
            return plain
        for need in self.needs:
            if isinstance(need, Each) and has_array(request, need.elements, version):
                return self.refusal_of(need, request, code, version)
        if self.refused is not None:
            return self.refused(request, code, version)
        return refused(API[self.key].response, request, code, version, self.refusal)

    def refusal_of(self, need: Each, request: Any, code: ErrorCode, version: int) -> Message | None:
        """Return the answer that refuses the elements of which this right is needed, like `refusal_of_all`."""
        if self.refused is not None:
            return self.refused(request, code, version)
        return coded(API[self.key].response, need, request, repeat(code), version, self.refusal)
