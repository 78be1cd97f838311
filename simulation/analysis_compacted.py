"""The promises of a compacted partition, held against everything that was written into it.

Owns what may be missing: to a reader, a record that a later committed one of its key has superseded, or that was
aborted, and no other; in the end, of each key, no more than that either, but that a tombstone may go in its time,
with all that is older. What is there is what was written there. What once was gone does not come back.
"""

from collections import defaultdict
from collections.abc import Generator, Iterator

from simulation.history import History, Partition, Place, Poll, key_of

_Keys = dict[bytes | None, list[int]]
"""The offsets of committed records in order, by key."""


def compacted_anomalies(history: History) -> Iterator[str]:
    """Yield what is wrong with compacted partitions."""
    for place, written in history.written.items():
        final = history.final.get(place)
        if final is not None:
            yield from _Place(history, place, written, final).anomalies()


class _Place:
    """One compacted partition: as it was written, and as it is in the end."""

    def __init__(self, history: History, place: Place, written: Partition, final: Partition) -> None:
        self._place = place
        self._polls = [poll for poll in history.polls if poll.place == place]
        self._last = history.by_pulsar.get(place)
        self._tombstones_stay = place in history.tombstones_stay
        self._written = {offset: value for offset, value, _ in written.records}
        self._committed = written.committed
        self._final = final
        self._offsets: _Keys = defaultdict(list)
        for offset in sorted(written.committed):
            self._offsets[key_of(written.committed[offset])[1]].append(offset)

    def anomalies(self) -> Iterator[str]:
        """Yield all."""
        final, last = self._final, self._last
        yield from self._other("in the end there is", {offset: value for offset, value, _ in final.records}, False)
        yield from self._other("in the end there is committed", final.committed, True)
        for key, offsets in self._offsets.items():
            yield from self._last_of(key, offsets, final.log_start, final.committed)
        if last is not None:
            yield from self._other("in the end Pulsar's reader gets", dict(last.records), True)
            for key, offsets in self._offsets.items():
                yield from self._last_of(key, offsets, last.log_start, dict(last.records), " for Pulsar's reader")
        gone: dict[bool, set[int]] = {False: set(), True: set()}
        by_reader: dict[tuple[str, bool], list[Poll]] = defaultdict(list)
        for poll in self._polls:
            by_reader[poll.reader, poll.committed].append(poll)
        for (_, committed), polls in by_reader.items():
            gone[committed] |= yield from self._read(polls)
        final_offsets = {True: final.committed.keys(), False: {offset for offset, _, _ in final.records}}
        for committed, offsets_there in final_offsets.items():
            if back := sorted(gone[committed] & offsets_there):
                yield f"comes back: {self._place} has {back[:3]} in the end, which readers have missed"

    def _other(self, who: str, found: dict[int, bytes], committed: bool) -> Iterator[str]:
        for offset, value in found.items():
            written = self._written.get(offset)
            if value != written:
                yield f"inconsistent: {who} {value!r} at {offset} of {self._place}, where {written!r} was written"
            elif committed and offset not in self._committed:
                yield f"aborted read: {who} {value!r} at {offset} of {self._place}, which was not committed"

    def _last_of(
        self, key: bytes | None, offsets: list[int], log_start: int, there: dict[int, bytes], whom: str = ""
    ) -> Iterator[str]:
        """The last committed value of a key is there; a tombstone, or nothing older."""
        offsets = [offset for offset in offsets if offset >= log_start]
        if not offsets or offsets[-1] in there:
            return
        value = self._committed[offsets[-1]]
        older = [offset for offset in offsets if offset in there]
        if not key_of(value)[2]:
            where = f"at {offsets[-1]} of {self._place}"
            yield f"lost write: {value!r} {where} is the last of {key!r}, and is not there{whom}"
        elif older:
            yield f"tombstone gone: {value!r} at {offsets[-1]} of {self._place}, and {older} of {key!r} are there{whom}"
        elif self._tombstones_stay:
            yield f"tombstone gone: {value!r} at {offsets[-1]} of {self._place}, before its time{whom}"

    def _read(self, polls: list[Poll]) -> Generator[str, None, set[int]]:
        """Look at what one reader got, poll by poll; return the offsets that it missed."""
        gone: set[int] = set()
        for poll in polls:
            found = dict(poll.records)
            yield from self._other(f"{poll.reader} read", found, poll.committed)
            if back := sorted(gone & found.keys()):
                yield f"comes back: {poll.reader} read {back[:3]} of {self._place}, which it had missed before"
            first = max(poll.from_offset, poll.log_start)
            expected = self._committed if poll.committed else self._written
            missed = {offset for offset in expected if first <= offset < poll.next_offset} - found.keys()
            if wrong := sorted(offset for offset in missed if not self._may_go(offset, poll.last_stable)):
                yield (
                    f"lost write: {poll.reader} read {'' if poll.committed else 'un'}committed {self._place} from "
                    f"{first} to {poll.next_offset} without {wrong[:3]}, which nothing had superseded"
                )
            gone |= missed
        return gone

    def _may_go(self, offset: int, stable: int) -> bool:
        """Say whether compaction, which goes no further than `stable`, may have removed a record."""
        value = self._committed.get(offset)
        if value is None:
            return offset < stable  # it was aborted
        _, key, is_tombstone = key_of(value)
        last = self._offsets[key]
        if any(offset < later < stable for later in last):
            return True
        return is_tombstone and not self._tombstones_stay and offset < stable
