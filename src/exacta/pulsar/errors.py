"""Rejections as Pulsar's errors: one total table, what a SEND is told instead, and the request that they refuse.

What decides is what clients make of a number. The Go client looks only at the text in most answers, so no text is ever
empty. After a SEND_ERROR it gives its messages up for NotAllowedError, and for all other numbers it connects again and
sends them once more: right where that may help, and an endless loop where it cannot.
"""

from abc import abstractmethod
from typing import Final

from exacta.core.rejections import Rejection
from exacta.front.request import Request
from exacta.front.words import words_of
from exacta.protocol.pulsar.messages_pb2 import ServerError

CODES: Final[dict[Rejection, ServerError]] = {
    Rejection.UNKNOWN_TOPIC_OR_PARTITION: ServerError.TopicNotFound,
    Rejection.TOPIC_ALREADY_EXISTS: ServerError.MetadataError,
    Rejection.INVALID_TOPIC: ServerError.InvalidTopicName,
    Rejection.INVALID_PARTITIONS: ServerError.NotAllowedError,
    Rejection.INTERNAL_TOPIC: ServerError.NotAllowedError,
    Rejection.INVALID_PRODUCER_ID_MAPPING: ServerError.NotAllowedError,
    Rejection.INVALID_TRANSACTION_STATE: ServerError.InvalidTxnStatus,
    Rejection.TRANSACTION_ENDED: ServerError.InvalidTxnStatus,
    Rejection.PARTLY_STORED: ServerError.NotAllowedError,
    Rejection.WRITER_CLOSED: ServerError.ServiceNotReady,
    Rejection.INVALID_TRANSACTION_TIMEOUT: ServerError.NotAllowedError,
    Rejection.PRODUCER_FENCED: ServerError.ProducerFenced,
    Rejection.TRANSACTION_NOT_FOUND: ServerError.TransactionNotFound,
    Rejection.TRANSACTION_CONFLICT: ServerError.TransactionConflict,
    Rejection.LIMIT_REACHED: ServerError.TooManyRequests,
    Rejection.TOO_MUCH_STAGED: ServerError.TooManyRequests,
    Rejection.INVALID_SUBSCRIPTION: ServerError.NotAllowedError,
    Rejection.SUBSCRIPTION_NOT_FOUND: ServerError.SubscriptionNotFound,
    Rejection.SUBSCRIPTION_BUSY: ServerError.ConsumerBusy,
    Rejection.KEY_RANGES_REFUSED: ServerError.ConsumerAssignError,
    Rejection.UNCOMMITTED_NOT_DURABLE: ServerError.NotAllowedError,
    Rejection.ISOLATION_LEVELS_DIFFER: ServerError.ConsumerBusy,
    Rejection.CONSUMER_NOT_FOUND: ServerError.ConsumerNotFound,
    Rejection.BACKLOG_HOLDS_PRODUCERS: ServerError.ProducerBlockedQuotaExceededError,
    Rejection.BACKLOG_QUOTA_EXCEEDED: ServerError.ProducerBlockedQuotaExceededException,
    Rejection.OFFSET_OUT_OF_RANGE: ServerError.NotAllowedError,
    Rejection.STORAGE_ERROR: ServerError.PersistenceError,
    # Clients open the producer again and again after it, and keep what they were to send.
    Rejection.DISK_FULL: ServerError.ProducerBlockedQuotaExceededError,
    Rejection.RESERVE_USED_UP: ServerError.ServiceNotReady,
}

CANNOT_HAPPEN_HERE: Final = frozenset(
    {
        Rejection.UNKNOWN_TOPIC_ID,
        Rejection.INCONSISTENT_TOPIC_ID,
        Rejection.INVALID_REPLICA_ASSIGNMENT,
        Rejection.DELETION_NOT_ALLOWED,
        Rejection.UNREADABLE_BODY,
        Rejection.OUT_OF_ORDER_SEQUENCE,
        Rejection.INVALID_PRODUCER_EPOCH,
        Rejection.UNKNOWN_PRODUCER_ID,
        Rejection.TRANSACTION_NOT_BEGUN,
        Rejection.TRANSACTION_ABORTABLE,
        Rejection.CONCURRENT_TRANSACTIONS,
        Rejection.INVALID_TRANSACTIONAL_ID,
        Rejection.TOO_MANY_TRANSACTIONS,
        Rejection.UNKNOWN_MEMBER_ID,
        Rejection.FENCED_INSTANCE_ID,
        Rejection.ILLEGAL_GENERATION,
        Rejection.FENCED_MEMBER_EPOCH,
        Rejection.STALE_MEMBER_EPOCH,
        Rejection.MEMBER_EPOCH_NEEDED,
        Rejection.UNRELEASED_INSTANCE_ID,
        Rejection.UNSUPPORTED_ASSIGNOR,
        Rejection.INVALID_REGULAR_EXPRESSION,
        Rejection.REBALANCE_IN_PROGRESS,
        Rejection.INCONSISTENT_GROUP_PROTOCOL,
        Rejection.INVALID_SESSION_TIMEOUT,
        Rejection.INVALID_GROUP_ID,
        Rejection.GROUP_MAX_SIZE_REACHED,
        Rejection.NON_EMPTY_GROUP,
        Rejection.GROUP_ID_NOT_FOUND,
        Rejection.GROUP_SUBSCRIBED_TO_TOPIC,
        Rejection.OFFSET_METADATA_TOO_LARGE,
        Rejection.UNACCEPTABLE_CREDENTIAL,
        Rejection.UNSUPPORTED_MECHANISM,
        Rejection.CREDENTIAL_NOT_FOUND,
        Rejection.DUPLICATE_USER,
        Rejection.NOT_THE_FIRST_USER,
        Rejection.MEMBERSHIP_REVOKED,
    }
)
"""Rejections of commands that no command of Pulsar leads to."""

RETRIED_SENDS: Final = frozenset({Rejection.STORAGE_ERROR})
"""The rejections after which it may help to send a message again; all others fail its producer."""


def server_error(rejection: Rejection) -> ServerError:
    """Return the error for the answer to any command but SEND."""
    return CODES[rejection]


def send_error(rejection: Rejection) -> ServerError:
    """Return the error for SEND_ERROR."""
    return CODES[rejection] if rejection in RETRIED_SENDS else ServerError.NotAllowedError


class AnsweringRequest(Request):
    """A request that was read and not answered yet, as the parts that both protocol and web interface use see it."""

    __slots__ = ()

    @abstractmethod
    def refuse(self, error: ServerError, text: str) -> None:
        """Answer with an error."""

    def reject(self, rejection: Rejection) -> None:
        """Answer with an error that says why the core has refused it."""
        self.refuse(server_error(rejection), words_of(rejection))
