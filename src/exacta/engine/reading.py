"""Reads of batches: every bit is checked before a reader gets it.

Acknowledged bytes may be altered on the disk later, and they are read from there again and again. Owns the checking,
and what the operator is told, once for each place. The answer that a reader gets is up to the caller.

A batch that has entered its partition in place says where it was staged (`log_reader`). It is checked as it is stored,
and then says where it is now.

Checking costs 0.05 ms a megabyte, and a microsecond a batch. A fetch may hold hundreds of thousands of tiny batches:
then other work gets its turn in between.
"""

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from exacta.engine.log_reader import Moved
from exacta.ports.journal import Buffer, Extent, Failed, JournalReader
from exacta.ports.record_format import RecordFormat
from exacta.ports.scheduler import Scheduler

logger = logging.getLogger(__name__)

BATCHES_A_TURN = 2_000
"""The number of batches after which the rest is checked in another turn of the loop."""
_MOST_TOLD = 1_000


class Read(NamedTuple):
    """The sound part of an extent: whole batches, as they were acknowledged, and the `fault` after them, if any.

    With `is_altered` the disk gave other bytes than it was given; otherwise it gave none.
    """

    batches: Buffer
    fault: str = ""
    is_altered: bool = False


class BatchReader:
    """Reads batches from the journal, and checks them."""

    def __init__(self, journal: JournalReader, records: RecordFormat, scheduler: Scheduler) -> None:
        self._journal = journal
        self._records = records
        self._scheduler = scheduler
        self._told: set[tuple[str, int, int, bool]] = set()

    def read(self, extents: Sequence[Extent], done: Callable[[list[Read]], None]) -> None:
        """Read extents that were found in this turn of the loop; `done` gets a `Read` for each, at once or later."""

        def check(buffers: Sequence[Buffer | Failed]) -> None:
            self._check(list(zip(extents, buffers, strict=True)), [], 0, 0, done)

        buffers = self._journal.read_cached(extents)
        if buffers is not None:
            check(buffers)
        else:
            self._journal.read(extents, check)

    def _check(
        self,
        pieces: list[tuple[Extent, Buffer | Failed]],
        reads: list[Read],
        number: int,
        size: int,
        done: Callable[[list[Read]], None],
    ) -> None:
        """Check pieces until the turn is over. Of the next one, `number` batches (`size` bytes) are checked already."""
        room = BATCHES_A_TURN
        while len(reads) < len(pieces):
            if room <= 0:
                self._scheduler.call_soon(self._check, pieces, reads, number, size, done)
                return
            extent, buffer = pieces[len(reads)]
            if isinstance(buffer, Failed):
                reads.append(Read(b"", buffer.reason))
                continue
            first_offsets = extent.first_offsets[number : number + room]
            if isinstance(extent.place, Moved):
                if not number:
                    buffer = bytearray(buffer)
                    pieces[len(reads)] = extent, buffer
                stored_at = extent.place.extent.first_offsets[number : number + room]
                sound, fault = self._records.sound(memoryview(buffer)[size:], stored_at)
                moved = memoryview(buffer)[size : size + sound]
                self._records.move(moved, first_offsets, extent.place.append_time_ms)
            else:
                sound, fault = self._records.sound(memoryview(buffer)[size:], first_offsets)
            room, number, size = room - len(first_offsets), number + len(first_offsets), size + sound
            if not fault and number < len(extent.first_offsets):
                continue
            if not fault and size < len(buffer):
                fault = f"{len(buffer) - size} bytes that no batch of the index has"
            reads.append(Read(memoryview(buffer)[:size], fault, is_altered=True) if fault else Read(buffer))
            number = size = 0
        done(reads)

    def tell(self, topic: str, partition: int, offset: int, read: Read) -> None:
        """Tell the operator once what is wrong with the batch at this offset; readers ask for it again and again."""
        place = topic, partition, offset, read.is_altered
        if place in self._told:
            return
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told.add(place)
        logger.log(
            logging.ERROR if read.is_altered else logging.WARNING,
            "%s-%d cannot be read from offset %d on: %s. If that stays so: stop the broker; `exacta log verify` says "
            "what is damaged, and `exacta log repair` what can be put right",
            topic,
            partition,
            offset,
            read.fault,
        )
