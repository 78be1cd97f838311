"""The reasons of refusals: one closed enum, which each wire protocol maps to its own codes in one total table."""

from enum import Enum, auto, unique


@unique
class Rejection(Enum):
    """A refusal that changed nothing. Names follow Kafka's errors where Kafka has one."""

    # topics and partitions
    UNKNOWN_TOPIC_OR_PARTITION = auto()
    UNKNOWN_TOPIC_ID = auto()
    INCONSISTENT_TOPIC_ID = auto()
    """Another topic has this name by now."""
    TOPIC_ALREADY_EXISTS = auto()
    INVALID_TOPIC = auto()
    INVALID_PARTITIONS = auto()
    INVALID_REPLICA_ASSIGNMENT = auto()
    INTERNAL_TOPIC = auto()
    """The topic is the cluster's own: clients do not write into it."""
    DELETION_NOT_ALLOWED = auto()
    """Records of this topic are not deleted by their age, only by their keys."""
    UNREADABLE_BODY = auto()
    """The partition has batches of an encoding that the reader does not understand."""
    # repeats, and the order of a writer's batches
    PARTLY_STORED = auto()
    """Some messages of the batch are stored already under its writer's name, and others are not."""
    WRITER_CLOSED = auto()
    """The partition has refused a batch and closed its writers since this one was opened: it is to be opened again."""
    # idempotence (KIP-98, KIP-360)
    OUT_OF_ORDER_SEQUENCE = auto()
    INVALID_PRODUCER_EPOCH = auto()
    UNKNOWN_PRODUCER_ID = auto()
    """This producer id was never handed out here: initialise again."""
    # transactions
    PRODUCER_FENCED = auto()
    INVALID_PRODUCER_ID_MAPPING = auto()
    INVALID_TRANSACTION_STATE = auto()
    INVALID_TRANSACTION_TIMEOUT = auto()
    TRANSACTION_NOT_BEGUN = auto()
    """The partition or group is not part of an open transaction of this producer."""
    TRANSACTION_NOT_FOUND = auto()
    """No handle and no joint transaction has this id, or what became of it is not remembered any more."""
    TRANSACTION_ENDED = auto()
    """The handle or the joint transaction of this id has ended, otherwise than is asked for."""
    TRANSACTION_ABORTABLE = auto()
    """The other side has ended the joint transaction: the holder of its transactional id aborts, and goes on."""
    CONCURRENT_TRANSACTIONS = auto()
    """The transactional id has another transaction open."""
    INVALID_TRANSACTIONAL_ID = auto()
    TOO_MANY_TRANSACTIONS = auto()
    """These are more than may be ended in one step: end them one by one."""
    # bounds
    LIMIT_REACHED = auto()
    """There are as many of these as there may be: see `Limits`."""
    TOO_MUCH_STAGED = auto()
    """Open transactions have written as much to sidecar topics as they may (`Limits.max_staged_bytes`)."""
    # groups and offsets
    UNKNOWN_MEMBER_ID = auto()
    FENCED_INSTANCE_ID = auto()
    ILLEGAL_GENERATION = auto()
    FENCED_MEMBER_EPOCH = auto()
    STALE_MEMBER_EPOCH = auto()
    MEMBER_EPOCH_NEEDED = auto()
    """The group's members have epochs (KIP-848), which this request version cannot name."""
    UNRELEASED_INSTANCE_ID = auto()
    UNSUPPORTED_ASSIGNOR = auto()
    INVALID_REGULAR_EXPRESSION = auto()
    REBALANCE_IN_PROGRESS = auto()
    INCONSISTENT_GROUP_PROTOCOL = auto()
    INVALID_SESSION_TIMEOUT = auto()
    INVALID_GROUP_ID = auto()
    GROUP_MAX_SIZE_REACHED = auto()
    NON_EMPTY_GROUP = auto()
    GROUP_ID_NOT_FOUND = auto()
    GROUP_SUBSCRIBED_TO_TOPIC = auto()
    MEMBERSHIP_REVOKED = auto()
    """The member's login holds no more, or it may not read the group any more."""
    OFFSET_METADATA_TOO_LARGE = auto()
    OFFSET_OUT_OF_RANGE = auto()
    # subscriptions (Apache Pulsar)
    INVALID_SUBSCRIPTION = auto()
    """The name is empty or too long, or the properties are too large. Or a durable subscription was asked for, and a
    non-durable one has the name, or the reverse; or a transaction was to acknowledge messages of a non-durable one."""
    SUBSCRIPTION_NOT_FOUND = auto()
    SUBSCRIPTION_BUSY = auto()
    """Its consumers do not share it with this one: it is Exclusive, or of another type or mode."""
    KEY_RANGES_REFUSED = auto()
    """The hashes that a consumer names are none, no ranges, or another consumer's."""
    UNCOMMITTED_NOT_DURABLE = auto()
    """A durable subscription cannot get messages of transactions that may abort."""
    ISOLATION_LEVELS_DIFFER = auto()
    """The subscription is read at another isolation level."""
    CONSUMER_NOT_FOUND = auto()
    TRANSACTION_CONFLICT = auto()
    """A message is acknowledged already, or another transaction has acknowledged it and is still open (PIP-31)."""
    BACKLOG_HOLDS_PRODUCERS = auto()
    """More is kept for subscriptions than the backlog quota allows, and producers wait until it is less."""
    BACKLOG_QUOTA_EXCEEDED = auto()
    """More is kept for subscriptions than the backlog quota allows, and producers are refused until it is less."""
    # users (KIP-554)
    UNACCEPTABLE_CREDENTIAL = auto()
    """A user without a name, or a key of too few or too many iterations."""
    UNSUPPORTED_MECHANISM = auto()
    CREDENTIAL_NOT_FOUND = auto()
    DUPLICATE_USER = auto()
    """The command alters a user twice."""
    NOT_THE_FIRST_USER = auto()
    """There are users already, or the command is about more than one new user."""
    # storage
    DISK_FULL = auto()
    """The disk has no room for this batch: it may have some later."""
    RESERVE_USED_UP = auto()
    """The disk is full, and so is what was kept of it for small things."""
    STORAGE_ERROR = auto()
    """The stored data could not be read, or the memory does not suffice for the request now."""
