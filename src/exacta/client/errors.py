"""The errors between us and a broker, and what may be done about each.

This module owns the exceptions of the client and the class of each error code. The class is part of Kafka's contract: a
client that repeats what is fatal writes twice, one that gives up what is retriable loses.
"""

from enum import Enum

from exacta.protocol.kafka.errors import RETRIABLE, ErrorCode


class ErrorClass(Enum):
    """The ways in which a caller may go on after an error code."""

    RETRIABLE = "repeat the same request after a while, elsewhere if need be"
    ABORTABLE = "abort this transaction; the producer may go on"
    FATAL = "this producer, or this request, will never succeed"


MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.LISTENER_NOT_FOUND,
    }
)
"""The broker that was asked is no longer the right one: look it up again, then repeat."""

FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})
"""A newer incarnation of the transactional id exists (KIP-98; KIP-360 split the code in two)."""

_ABORTABLE = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }
)


def classify(code: int) -> ErrorClass:
    """Return the class of an error code; a code that we do not know is fatal."""
    if code in RETRIABLE or code in MOVED or code == ErrorCode.CONCURRENT_TRANSACTIONS:
        return ErrorClass.RETRIABLE
    return ErrorClass.ABORTABLE if code in _ABORTABLE else ErrorClass.FATAL


def code_name(code: int) -> str:
    """Return Kafka's name of an error code, or its number where we do not know it."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error code {code}"


class ClientError(Exception):
    """Root of all that this package raises on purpose."""


class KafkaError(ClientError):
    """A broker answered with an error code."""

    def __init__(self, code: int, what: str, detail: str | None = None) -> None:
        self.code = code
        self.what = what
        self.detail = detail
        super().__init__(f"{what}: {code_name(code)}{f' ({detail})' if detail else ''}")

    @property
    def error_class(self) -> ErrorClass:
        """Return how the caller may go on."""
        return classify(self.code)

    @property
    def fenced(self) -> bool:
        """Return whether a newer incarnation of the transactional id exists."""
        return self.code in FENCED


class ConnectionLost(ClientError):
    """The connection broke, or the broker went silent: whether the request was executed is unknown."""


class UnknownHost(ConnectionLost):
    """The name of a broker's host does not resolve to an address on this machine."""


class UnknownBootstrap(ClientError):
    """No name of a bootstrap server resolves: repeating cannot mend it. The message names them all."""


class SecurityFailed(ClientError):
    """A connection cannot be secured as configured; repeating cannot mend it. The message is one sentence."""


class TlsFailed(SecurityFailed):
    """There is no TLS with this broker, or not with this configuration."""


class AuthenticationFailed(SecurityFailed):
    """The broker does not accept our login, or we do not accept the broker's."""


class DeadlineExceeded(ClientError):
    """The time given to a call ran out; `__cause__` is the last failure."""


class UnsupportedByBroker(ClientError):
    """The broker offers no version of an API that this client speaks."""
