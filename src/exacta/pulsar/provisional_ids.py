"""Provisional message ids: what a producer is told of a staged message, and what others mean by it (decision 0043).

Owns the one place where such an id is made, and becomes an ordinary one. Every command that names messages goes through
`resolve` before anything else looks at its ids.

    the message's transaction      ACK with an answer, SEEK, SUBSCRIBE   ACK without one, REDELIVER
    has committed                  its own id                            its own id
    is open                        NotAllowedError                       passed over
    was aborted                    NotAllowedError                       passed over
    has committed, but it is gone  NotAllowedError                       passed over

A message is gone whose records are deleted, or whose id is forgotten. Where it is there, what is meant is its own id.
A command that is refused changes nothing. An id that is passed over leaves its message where it is.

Theory of operation. The ledger of the id is the number of the partition, as ever. The entry of a message at place p is
-2^62 + 2p + 1, and no real entry is negative. Pulsar's clients compare ids as signed numbers. A provisional id lies
behind the id before all messages (-1, -1), so that a client sends a cumulative acknowledgement of it. It lies before
all messages of its partition. So no client takes another message for one that it has acknowledged, or read, already.

Clients acknowledge what is before a batch by the number before its entry's. That is why only every second number is an
entry's. The one before it stands for the last message before that entry, wherever the entry has come to lie.
"""

from collections.abc import Iterable

from exacta.core.ids import PartitionId
from exacta.core.log import staging
from exacta.core.log.staging import FIRST_PROVISIONAL_OFFSET, NotEntered, place_of
from exacta.ports.log import Advice
from exacta.protocol.pulsar.message_ids import entry_offset_of
from exacta.protocol.pulsar.messages_pb2 import MessageIdData

_FIRST_ENTRY = FIRST_PROVISIONAL_OFFSET

TEXTS = {
    NotEntered.OPEN: (
        "the message id {} is provisional, and the transaction of its message has not committed yet: use it again "
        "after the commit"
    ),
    NotEntered.GONE: "the message id {} is provisional, and its message was aborted, or is not there any more",
}


def entry_id(provisional_offset: int) -> int:
    """Return the entry id that the producer of a staged entry is told."""
    return _FIRST_ENTRY + 2 * place_of(provisional_offset) + 1


def is_provisional(message: MessageIdData) -> bool:
    """Return whether an id names a staged message."""
    return staging.is_provisional(entry_offset_of(message))


def resolve(present: Advice, partition_id: PartitionId, ids: Iterable[MessageIdData]) -> str | None:
    """Turn the provisional ids of a partition into ordinary ones, in place; return why one cannot be. None: all can.

    Ids of other partitions stay as they are. They name nothing here.
    """
    wrong: str | None = None
    for each in ids:
        if not is_provisional(each) or each.ledger_id != partition_id:
            continue
        number = entry_offset_of(each) - _FIRST_ENTRY
        place, is_entry = divmod(number, 2)
        found = present.find_staged(partition_id, FIRST_PROVISIONAL_OFFSET + place)
        if isinstance(found, NotEntered):
            wrong = TEXTS[found].format(f"({partition_id}, {entry_offset_of(each)})")
        else:
            each.entry_id = (found if is_entry else found - 1) % 2**64
    return wrong
