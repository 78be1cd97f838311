"""The bytes of durable events in the journal, and the number of their schema."""

import msgspec

from exacta.core.events import (
    AclsCreated,
    AclsDeleted,
    BatchAppended,
    BatchStaged,
    BrokerConfigsSet,
    ClientQuotasSet,
    CompactedForgotten,
    ConclusionHeard,
    ConsumerGroupUpdated,
    GroupDeleted,
    GroupEpochsReserved,
    GroupSettled,
    IdsReserved,
    LeadTaken,
    LogStartMoved,
    MessagesAcknowledged,
    MessagesAcknowledgedInTransaction,
    OffsetsCommitted,
    OffsetsDeleted,
    PartitionsAdded,
    ProducerBound,
    ProducersExpired,
    ScramKeysSet,
    StagedStreamSpilled,
    SubscriptionChanged,
    SubscriptionCreated,
    SubscriptionDeleted,
    SubscriptionMoved,
    TopicConfigsSet,
    TopicCreated,
    TopicDeleted,
    TopicEpochMoved,
    TransactionalIdsExpired,
    TransactionalOffsetsCommitted,
    TransactionBegun,
    TransactionEnded,
    TransactionExtended,
    TransactionJoined,
    WriterNamed,
    WritersExpired,
)
from exacta.core.values.secret import decode_secret, encode_secret

EVENTS_SCHEMA = 3
"""The number that a data directory's `format` file has for these structs.

It grows with a change that an older version would misread: a new event, or a new field. `engine.schema` says which
schemas this version reads. Until the first release a change may replace the present schema instead.
"""

DurableEvent = (
    TopicCreated
    | TopicDeleted
    | IdsReserved
    | ProducerBound
    | TransactionBegun
    | TransactionExtended
    | BatchAppended
    | TransactionalOffsetsCommitted
    | TransactionEnded
    | OffsetsCommitted
    | GroupDeleted
    | OffsetsDeleted
    | TransactionalIdsExpired
    | ProducersExpired
    | TopicEpochMoved
    | WriterNamed
    | WritersExpired
    | TopicConfigsSet
    | PartitionsAdded
    | LogStartMoved
    | GroupEpochsReserved
    | CompactedForgotten
    | GroupSettled
    | ConsumerGroupUpdated
    | SubscriptionCreated
    | SubscriptionChanged
    | SubscriptionDeleted
    | SubscriptionMoved
    | MessagesAcknowledged
    | MessagesAcknowledgedInTransaction
    | TransactionJoined
    | ConclusionHeard
    | BatchStaged
    | StagedStreamSpilled
    | BrokerConfigsSet
    | LeadTaken
    | AclsCreated
    | AclsDeleted
    | ScramKeysSet
    | ClientQuotasSet
)

_encoder = msgspec.msgpack.Encoder(enc_hook=encode_secret)
_decoder: msgspec.msgpack.Decoder[DurableEvent] = msgspec.msgpack.Decoder(DurableEvent, dec_hook=decode_secret)

encode_event = _encoder.encode
"""Encode a durable event for the journal."""

decode_event = _decoder.decode
"""Decode what `encode_event` made. Raises `msgspec.DecodeError` for anything else."""
