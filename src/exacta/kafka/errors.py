"""Rejections as Kafka's error codes: one total table, and the exceptions that some APIs and versions need.

The class of an error (retriable, abortable, fatal) is part of the contract, since clients lose data over it
(docs/explanation/architecture.md#traps). What decides is not the code's name but what clients make of it in the answer
to *this* API in *this* version, hence the second table.
"""

from exacta.core.rejections import Rejection
from exacta.core.replies import Reply
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode

CODES: dict[Rejection, ErrorCode] = {
    Rejection.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    Rejection.UNKNOWN_TOPIC_ID: ErrorCode.UNKNOWN_TOPIC_ID,
    Rejection.INCONSISTENT_TOPIC_ID: ErrorCode.INCONSISTENT_TOPIC_ID,
    Rejection.TOPIC_ALREADY_EXISTS: ErrorCode.TOPIC_ALREADY_EXISTS,
    Rejection.INVALID_TOPIC: ErrorCode.INVALID_TOPIC_EXCEPTION,
    Rejection.INVALID_PARTITIONS: ErrorCode.INVALID_PARTITIONS,
    Rejection.INVALID_REPLICA_ASSIGNMENT: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    Rejection.INTERNAL_TOPIC: ErrorCode.INVALID_TOPIC_EXCEPTION,
    Rejection.DELETION_NOT_ALLOWED: ErrorCode.POLICY_VIOLATION,
    # librdkafka reports it once and goes on; Java's client throws it. Neither takes it for data or for an empty topic.
    Rejection.UNREADABLE_BODY: ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    Rejection.OUT_OF_ORDER_SEQUENCE: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    Rejection.INVALID_PRODUCER_EPOCH: ErrorCode.INVALID_PRODUCER_EPOCH,
    Rejection.UNKNOWN_PRODUCER_ID: ErrorCode.UNKNOWN_PRODUCER_ID,
    Rejection.PRODUCER_FENCED: ErrorCode.PRODUCER_FENCED,
    Rejection.INVALID_PRODUCER_ID_MAPPING: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    Rejection.INVALID_TRANSACTION_STATE: ErrorCode.INVALID_TXN_STATE,
    Rejection.TRANSACTION_ENDED: ErrorCode.INVALID_TXN_STATE,
    Rejection.INVALID_TRANSACTION_TIMEOUT: ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    Rejection.TRANSACTION_NOT_BEGUN: ErrorCode.INVALID_TXN_STATE,
    # Only Exacta's own JoinTransaction, AbortHandles and AcknowledgeMessages name a transaction by its own id.
    Rejection.TRANSACTION_NOT_FOUND: ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    Rejection.TRANSACTION_ABORTABLE: ErrorCode.TRANSACTION_ABORTABLE,
    # Only Exacta's own JoinTransaction is told so.
    Rejection.CONCURRENT_TRANSACTIONS: ErrorCode.CONCURRENT_TRANSACTIONS,
    Rejection.INVALID_TRANSACTIONAL_ID: ErrorCode.INVALID_REQUEST,
    Rejection.TOO_MANY_TRANSACTIONS: ErrorCode.POLICY_VIOLATION,
    # Permanent to every client: what is full now is full when it asks again, until an operator raises the bound.
    Rejection.LIMIT_REACHED: ErrorCode.POLICY_VIOLATION,
    Rejection.TOO_MUCH_STAGED: ErrorCode.POLICY_VIOLATION,
    # Kafka has no error for them. A retriable one would be a wait without a reason until delivery.timeout.ms.
    Rejection.BACKLOG_HOLDS_PRODUCERS: ErrorCode.POLICY_VIOLATION,
    Rejection.BACKLOG_QUOTA_EXCEEDED: ErrorCode.POLICY_VIOLATION,
    Rejection.UNKNOWN_MEMBER_ID: ErrorCode.UNKNOWN_MEMBER_ID,
    Rejection.FENCED_INSTANCE_ID: ErrorCode.FENCED_INSTANCE_ID,
    Rejection.ILLEGAL_GENERATION: ErrorCode.ILLEGAL_GENERATION,
    Rejection.FENCED_MEMBER_EPOCH: ErrorCode.FENCED_MEMBER_EPOCH,
    Rejection.STALE_MEMBER_EPOCH: ErrorCode.STALE_MEMBER_EPOCH,
    Rejection.MEMBER_EPOCH_NEEDED: ErrorCode.UNSUPPORTED_VERSION,
    Rejection.UNRELEASED_INSTANCE_ID: ErrorCode.UNRELEASED_INSTANCE_ID,
    Rejection.UNSUPPORTED_ASSIGNOR: ErrorCode.UNSUPPORTED_ASSIGNOR,
    Rejection.INVALID_REGULAR_EXPRESSION: ErrorCode.INVALID_REGULAR_EXPRESSION,
    Rejection.REBALANCE_IN_PROGRESS: ErrorCode.REBALANCE_IN_PROGRESS,
    Rejection.INCONSISTENT_GROUP_PROTOCOL: ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    Rejection.INVALID_SESSION_TIMEOUT: ErrorCode.INVALID_SESSION_TIMEOUT,
    Rejection.INVALID_GROUP_ID: ErrorCode.INVALID_GROUP_ID,
    Rejection.GROUP_MAX_SIZE_REACHED: ErrorCode.GROUP_MAX_SIZE_REACHED,
    Rejection.NON_EMPTY_GROUP: ErrorCode.NON_EMPTY_GROUP,
    Rejection.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    Rejection.GROUP_SUBSCRIBED_TO_TOPIC: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    Rejection.MEMBERSHIP_REVOKED: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    Rejection.OFFSET_METADATA_TOO_LARGE: ErrorCode.OFFSET_METADATA_TOO_LARGE,
    Rejection.OFFSET_OUT_OF_RANGE: ErrorCode.OFFSET_OUT_OF_RANGE,
    Rejection.UNACCEPTABLE_CREDENTIAL: ErrorCode.UNACCEPTABLE_CREDENTIAL,
    Rejection.UNSUPPORTED_MECHANISM: ErrorCode.UNSUPPORTED_SASL_MECHANISM,
    Rejection.CREDENTIAL_NOT_FOUND: ErrorCode.RESOURCE_NOT_FOUND,
    Rejection.DUPLICATE_USER: ErrorCode.DUPLICATE_RESOURCE,
    Rejection.NOT_THE_FIRST_USER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    Rejection.STORAGE_ERROR: ErrorCode.KAFKA_STORAGE_ERROR,
    # Every producer sends again after it.
    Rejection.DISK_FULL: ErrorCode.KAFKA_STORAGE_ERROR,
    # As in Kafka, whose coordinators turn a failure of their log into one of themselves: clients ask again.
    Rejection.RESERVE_USED_UP: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    # Only Exacta's own ResetSubscription and AcknowledgeMessages are told so.
    Rejection.SUBSCRIPTION_NOT_FOUND: ErrorCode.RESOURCE_NOT_FOUND,
    # Only Exacta's own AcknowledgeMessages is told these. The first is KIP-932's word for "it cannot be acknowledged".
    Rejection.TRANSACTION_CONFLICT: ErrorCode.INVALID_RECORD_STATE,
    Rejection.INVALID_SUBSCRIPTION: ErrorCode.INVALID_REQUEST,
}

CANNOT_HAPPEN_HERE = frozenset(
    {
        Rejection.CONSUMER_NOT_FOUND,
        Rejection.ISOLATION_LEVELS_DIFFER,
        Rejection.KEY_RANGES_REFUSED,
        Rejection.PARTLY_STORED,
        Rejection.SUBSCRIPTION_BUSY,
        Rejection.UNCOMMITTED_NOT_DURABLE,
        Rejection.WRITER_CLOSED,
    }
)
"""Rejections of commands that no request of Kafka leads to."""

_EVERY_VERSION = 0x7FFF

BELOW: dict[tuple[ApiKey, Rejection], tuple[int, ErrorCode]] = {
    # KIP-588: the word "fenced" is newer than these APIs; their older versions know the older code only.
    (ApiKey.INIT_PRODUCER_ID, Rejection.PRODUCER_FENCED): (4, ErrorCode.INVALID_PRODUCER_EPOCH),
    (ApiKey.ADD_PARTITIONS_TO_TXN, Rejection.PRODUCER_FENCED): (2, ErrorCode.INVALID_PRODUCER_EPOCH),
    (ApiKey.ADD_OFFSETS_TO_TXN, Rejection.PRODUCER_FENCED): (2, ErrorCode.INVALID_PRODUCER_EPOCH),
    (ApiKey.END_TXN, Rejection.PRODUCER_FENCED): (2, ErrorCode.INVALID_PRODUCER_EPOCH),
    # Where a partition's leader, not the coordinator, refuses an epoch, Kafka never says "fenced"; librdkafka would
    # take that for abortable in a produce response.
    (ApiKey.PRODUCE, Rejection.PRODUCER_FENCED): (_EVERY_VERSION, ErrorCode.INVALID_PRODUCER_EPOCH),
    (ApiKey.TXN_OFFSET_COMMIT, Rejection.PRODUCER_FENCED): (_EVERY_VERSION, ErrorCode.INVALID_PRODUCER_EPOCH),
    # A write outside any transaction: the client must abort, and go on with its next transaction.
    # Produce: INVALID_TXN_STATE is fatal to kafka-python. TRANSACTION_ABORTABLE is what Kafka says from v11 on; older
    # clients do not know its number, and every one of them takes an unknown permanent error for abortable.
    (ApiKey.PRODUCE, Rejection.TRANSACTION_NOT_BEGUN): (_EVERY_VERSION, ErrorCode.TRANSACTION_ABORTABLE),
    # TxnOffsetCommit: an unknown code is fatal to Java and kafka-python. A stale generation is what all of them answer
    # by aborting (KIP-447).
    (ApiKey.TXN_OFFSET_COMMIT, Rejection.TRANSACTION_NOT_BEGUN): (4, ErrorCode.ILLEGAL_GENERATION),
    # KIP-890: older versions of these do not know that error. Java's client and librdkafka abort after
    # UNKNOWN_PRODUCER_ID, and go on (KIP-360); INVALID_TXN_STATE, and to Java an unknown code, would be fatal. Only a
    # commit is refused so, never an abort: a client that aborts would try to abort again, for ever (KAFKA-19250).
    (ApiKey.ADD_PARTITIONS_TO_TXN, Rejection.TRANSACTION_ABORTABLE): (5, ErrorCode.UNKNOWN_PRODUCER_ID),
    (ApiKey.ADD_OFFSETS_TO_TXN, Rejection.TRANSACTION_ABORTABLE): (4, ErrorCode.UNKNOWN_PRODUCER_ID),
    (ApiKey.END_TXN, Rejection.TRANSACTION_ABORTABLE): (4, ErrorCode.UNKNOWN_PRODUCER_ID),
    (ApiKey.TXN_OFFSET_COMMIT, Rejection.TRANSACTION_ABORTABLE): (4, ErrorCode.ILLEGAL_GENERATION),
    # KIP-848: older versions of these know only generations.
    (ApiKey.OFFSET_COMMIT, Rejection.GROUP_ID_NOT_FOUND): (9, ErrorCode.ILLEGAL_GENERATION),
    (ApiKey.TXN_OFFSET_COMMIT, Rejection.GROUP_ID_NOT_FOUND): (6, ErrorCode.ILLEGAL_GENERATION),
    (ApiKey.TXN_OFFSET_COMMIT, Rejection.STALE_MEMBER_EPOCH): (6, ErrorCode.ILLEGAL_GENERATION),
}
"""The versions of an API below this one are told this code for the rejection instead."""

AT_LEAST: dict[tuple[ApiKey, Rejection], ErrorCode] = {
    # As Kafka's coordinator says it, which asks who may write into the topic: nobody.
    (ApiKey.ADD_PARTITIONS_TO_TXN, Rejection.INTERNAL_TOPIC): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    (ApiKey.TXN_OFFSET_COMMIT, Rejection.TRANSACTION_NOT_BEGUN): ErrorCode.TRANSACTION_ABORTABLE,
}
"""The versions of an API that `BELOW` does not speak of are told this code for the rejection."""


def error_code(answer: Reply | Rejection, api_key: ApiKey, version: int) -> ErrorCode:
    """Return the code for an answer to `api_key` in `version`; NONE for a reply."""
    if not isinstance(answer, Rejection):
        return ErrorCode.NONE
    below = BELOW.get((api_key, answer))
    if below is not None and version < below[0]:
        return below[1]
    return AT_LEAST.get((api_key, answer)) or CODES[answer]
