"""The base of all events, and the number by which each is written."""

from typing import ClassVar

from msgspec import Struct

TAGS = {
    "Event": 0,  # the base class, which is never written
    # topics and logs
    "TopicCreated": 1,
    "TopicDeleted": 2,
    "TopicConfigsSet": 3,
    "PartitionsAdded": 4,
    "LogStartMoved": 5,
    "CompactedForgotten": 6,
    "BatchAppended": 7,
    "WriterNamed": 8,
    "WritersExpired": 9,
    "BrokerConfigsSet": 35,
    "LeadTaken": 60,
    # producers and transactions
    "IdsReserved": 10,
    "ProducerIdAllocated": 11,
    "ProducerBound": 12,
    "TransactionBegun": 13,
    "TransactionExtended": 14,
    "TransactionEnded": 15,
    "NothingAborted": 16,
    "TransactionalIdsExpired": 17,
    "ProducersExpired": 18,
    "TopicEpochMoved": 19,
    "TransactionJoined": 30,
    "ConclusionHeard": 31,
    "HandlesAbandoned": 36,
    "BatchStaged": 32,
    "StagedStreamSpilled": 33,
    # offsets and groups
    "TransactionalOffsetsCommitted": 20,
    "OffsetsCommitted": 21,
    "OffsetsDeleted": 22,
    "GroupDeleted": 23,
    "GroupEpochsReserved": 24,
    "MembershipChanged": 25,
    "MemberSeen": 26,
    "GroupSettled": 27,
    "ConsumerGroupChanged": 28,
    "ConsumerGroupUpdated": 29,
    "GroupEmptied": 34,
    "MemberDue": 39,
    # subscriptions
    "SubscriptionCreated": 40,
    "SubscriptionChanged": 41,
    "SubscriptionDeleted": 42,
    "SubscriptionMoved": 43,
    "MessagesAcknowledged": 44,
    "MessagesAcknowledgedInTransaction": 45,
    "ConsumerConnected": 46,
    "ConsumerDisconnected": 47,
    "PermitsGranted": 48,
    "EntriesDelivered": 49,
    "EntriesTakenBack": 50,
    "NonDurableSubscriptionCreated": 51,
    "NonDurableSubscriptionDeleted": 52,
    "NonDurableSubscriptionMoved": 53,
    "NonDurableMessagesAcknowledged": 54,
    "AppendsRefused": 55,
    "DelaysEnded": 56,
    "DiskRoomSet": 58,
    "WritersClosed": 59,
    # access rules, users and quotas
    "AclsCreated": 61,
    "AclsDeleted": 62,
    "ScramKeysSet": 63,
    "ClientQuotasSet": 64,
    # all tables
    "EntriesOwned": 57,
}
"""The number by which each event is written. None is used for two events, nor ever again for another one."""


class Event(Struct, frozen=True, kw_only=True, array_like=True, tag=TAGS.__getitem__):
    """Base of all events. Times are milliseconds since 1970, from the journal's own clock."""

    durable: ClassVar[bool] = True
