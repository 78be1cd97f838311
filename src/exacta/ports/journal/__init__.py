"""The journal: where the engine makes its events durable, and the log in which record batches lie.

This package holds the contract between the engine and whatever stores its events: the types that cross it, and what
each call promises. It holds no storage (see `exacta.adapters`) and no meaning: an adapter knows neither records nor
transactions.

The contract is four Protocols. `JournalReader` looks batches up and reads them, and is all that the readers of the
engine ask for. `JournalSnapshots` stores the state, so that a replay is short. `JournalSpace` frees and compacts what
is stored. `Journal` is a reader with snapshots and space that can also be replayed, appended to and written to.

Theory of operation. The journal is one sequence of *groups*. A group is what one `append` or `write` wrote: entries,
each an opaque event with an opaque payload. A group becomes durable whole or not at all. *Positions* are byte positions
in that sequence. They only grow, and a caller only ever holds positions that are boundaries between groups.

A group may also be *written* before it is durable (`write`). Such a group outlives the process, but maybe not the
machine. What becomes durable is always a prefix of the sequence: the next append also makes durable all that was
written before it.

A payload is made of record batches that belong to *streams*. A stream is one of the engine's dense partition ids, and
is never used a second time. The entry's index says which offsets of which stream lie where in the payload. The journal
keeps these rows and finds batches by stream and offset. It understands neither events nor batches.

Threads. Every method is called on the event-loop thread, and every callback runs there, never from inside the call
that was given it. The adapter is opened with a callable like `call_soon_threadsafe`, by which it hands callbacks to the
loop. Opening, `replay` and `close` may block. `write` may block for as long as it takes to copy a little, or to make it
durable where that has been quick. No other method may block.
"""

from exacta.ports.journal.entries import Buffer, Extent, IndexEntry, JournalEntries, JournalEntry, TimeEntry
from exacta.ports.journal.journal import Journal
from exacta.ports.journal.reader import JournalReader
from exacta.ports.journal.results import (
    AppendResult,
    Cleaned,
    Conflict,
    Failed,
    GroupAppended,
    JournalDamaged,
    JournalError,
)
from exacta.ports.journal.schema import Schema
from exacta.ports.journal.snapshots import Fold, JournalSnapshots
from exacta.ports.journal.space import CompactionOrder, Joining, JournalSpace, Room

__all__ = [
    "AppendResult",
    "Buffer",
    "Cleaned",
    "CompactionOrder",
    "Conflict",
    "Extent",
    "Failed",
    "Fold",
    "GroupAppended",
    "IndexEntry",
    "Joining",
    "Journal",
    "JournalDamaged",
    "JournalEntries",
    "JournalEntry",
    "JournalError",
    "JournalReader",
    "JournalSnapshots",
    "JournalSpace",
    "Room",
    "Schema",
    "TimeEntry",
]
