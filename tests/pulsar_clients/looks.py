"""Looks at several partitions at once, and what they may show: docs/explanation/guarantees.md ("All of a transaction").

A look is one answer of Fetch: the last stable offset and the end of each partition, of one state. When all is over the
log is read as it lies, with its markers. Then `Judge` goes through the looks in their order. Where one of them shows a
part of a transaction, an older transaction must have been open in each partition that lacks the rest: it begins at that
partition's last stable offset, and its markers came after the look.

The first word of a value names its transaction, the second one an order, and a third one is what an account got.
"""

import contextlib
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from exacta.client.fetcher import fetch_request
from exacta.client.transactions import TopicPartition
from simulation.clients.batches import read_batches
from tests.kafka.wire import Wire

PAUSE_S = 0.01
"""The pause between two looks, which leaves the machine to those who are looked at."""
LOST = (ConnectionError, TimeoutError, OSError)
_BY_NAME = 12
"""The last version of Fetch that names topics."""
_UNCOMMITTED, _COMMITTED = 0, 1
_MOST_BYTES = 1 << 20


class Seen(NamedTuple):
    """What a look shows of a partition."""

    stable: int
    """Its last stable offset: a reader of committed records gets what lies before it."""
    end: int


Look = Mapping[str, Seen]
"""By topic; each has one partition."""


class Lying(NamedTuple):
    """A record, or a marker, which has no value."""

    offset: int
    producer_id: int
    value: str
    is_marker: bool
    commits: bool


Log = Mapping[str, Sequence[Lying]]
"""What lies in each topic, in its order."""


def _fetch(wire: Wire, positions: Mapping[str, int], *, isolation_level: int, max_bytes: int) -> dict[str, Any]:
    places = {TopicPartition(topic, 0): offset for topic, offset in positions.items()}
    request = fetch_request(places, isolation_level=isolation_level, max_wait_ms=0, max_bytes=max_bytes)
    found = {topic.topic: topic.partitions[0] for topic in wire.ask(request, _BY_NAME).responses}
    assert all(each.error_code == 0 for each in found.values()), found
    return found


def look(wire: Wire, topics: Iterable[str]) -> Look:
    """Take one look."""
    found = _fetch(wire, dict.fromkeys(topics, 0), isolation_level=_COMMITTED, max_bytes=1)
    return {topic: Seen(each.last_stable_offset, each.high_watermark) for topic, each in found.items()}


def log_of(wire: Wire, topics: Iterable[str]) -> Log:
    """Read all that lies in topics, whatever became of it."""
    return {topic: list(_lying(wire, topic)) for topic in topics}


def _lying(wire: Wire, topic: str) -> Iterator[Lying]:
    position = 0
    while True:
        found = _fetch(wire, {topic: position}, isolation_level=_UNCOMMITTED, max_bytes=_MOST_BYTES)[topic]
        if position >= found.high_watermark:
            return
        for header, values, commits in read_batches(found.records):
            if header.control:
                yield Lying(header.base_offset, header.producer_id, "", True, commits)
            for offset, value in values:
                yield Lying(offset, header.producer_id, value.decode(), False, False)
            position = header.base_offset + header.last_offset_delta + 1


class Looker:
    """Looks again and again, in a thread, until it is told to stop; it connects again where the broker was killed."""

    def __init__(self, address: tuple[str, int], topics: Sequence[str]) -> None:
        """Remember where to look."""
        self.looks: list[Look] = []
        self._address = address
        self._topics = topics
        self._stopping = threading.Event()
        self._threads = ThreadPoolExecutor(1)

    def __enter__(self) -> "Looker":
        """Begin to look."""
        self._running = self._threads.submit(self._run)
        return self

    def __exit__(self, *failure: object) -> None:
        """End it."""
        self._stopping.set()
        self._threads.shutdown()

    def stop(self) -> list[Look]:
        """Return what it has seen; raise what it has stumbled over."""
        self._stopping.set()
        self._threads.shutdown()
        self._running.result()
        return self.looks

    def _run(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(*LOST):
                self._look_until_it_is_lost()
            self._stopping.wait(PAUSE_S)

    def _look_until_it_is_lost(self) -> None:
        wire = Wire(self._address)
        with contextlib.closing(wire.socket):
            while not self._stopping.wait(PAUSE_S):
                self.looks.append(look(wire, self._topics))


@dataclass
class Whole:
    """One transaction, as it lies in the log."""

    parts: dict[str, list[Lying]] = field(default_factory=lambda: defaultdict(list))
    markers: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """The offsets of its markers: two where both sides have written."""
    outcomes: set[bool] = field(default_factory=set)
    """Whether its markers commit."""

    @property
    def committed(self) -> bool:
        return True in self.outcomes


class Judge:
    """Compares the log with itself, and the looks with the log; `anomalies` is what is wrong."""

    def __init__(self, log: Log) -> None:
        """Find the transactions of a log in which none is open any more."""
        self.anomalies: list[str] = []
        self.partial = 0
        """How many looks have shown a part of a transaction."""
        self.transactions: dict[str, Whole] = defaultdict(Whole)
        self.committed: dict[str, list[Lying]] = {}
        """What readers of committed records get of each topic."""
        self._begun: dict[tuple[str, int], str] = {}
        for topic, lying in log.items():
            self._take(topic, lying)
        for topic, lying in log.items():
            records = [each for each in lying if not each.is_marker]
            self.committed[topic] = [each for each in records if self.transactions[name_of(each)].committed]
        for name, whole in self.transactions.items():
            if len(whole.outcomes) != 1:
                self.anomalies.append(f"{name} is torn: its markers say {whole.outcomes}")

    def _take(self, topic: str, lying: Sequence[Lying]) -> None:
        open_here: dict[int, str] = {}
        ended_here: set[tuple[int, str]] = set()
        for each in lying:
            if each.is_marker:
                name = open_here.pop(each.producer_id, None)
                if name is not None:  # a partition may be registered, and nothing of it written
                    self.transactions[name].markers[topic].append(each.offset)
                    self.transactions[name].outcomes.add(each.commits)
                    ended_here.add((each.producer_id, name))
                continue
            name, whole = name_of(each), self.transactions[name_of(each)]
            if open_here.setdefault(each.producer_id, name) != name:
                self.anomalies.append(f"{name} at {topic} {each.offset} is in {open_here[each.producer_id]}")
            if (each.producer_id, name) in ended_here:
                self.anomalies.append(f"{name} at {topic} {each.offset} comes after its end")
            if topic not in whole.parts:
                self._begun[topic, each.offset] = name
            whole.parts[topic].append(each)
        if open_here:
            self.anomalies.append(f"{topic} has no end of {sorted(open_here.values())}")

    def values(self, topic: str) -> list[str]:
        """Return the committed values of a topic, in order."""
        return [each.value for each in self.committed[topic]]

    def judge(self, looks: Iterable[Look]) -> None:
        """Go through looks, in the order in which they were taken."""
        taken = dict.fromkeys(self.committed, 0)
        before: Look = {}
        shown: dict[str, int] = defaultdict(int)
        partial: set[str] = set()
        total = 0
        for number, seen in enumerate(looks):
            for topic, (stable, end) in seen.items():
                if before and (stable < before[topic].stable or end < before[topic].end):
                    self.anomalies.append(f"look {number} goes back in {topic}: {before[topic]}, {seen[topic]}")
                records = self.committed[topic]
                while taken[topic] < len(records) and records[taken[topic]].offset < stable:
                    each = records[taken[topic]]
                    taken[topic] += 1
                    total += amount_of(each)
                    shown[name_of(each)] += 1
                    partial.add(name_of(each))
            partial = {name for name in partial if shown[name] < self._size(name)}
            self.partial += bool(partial)
            for name in sorted(partial):
                self.anomalies += [f"look {number} {why}" for why in self._unexplained(name, seen)]
            if not partial and total:
                self.anomalies.append(f"look {number} shows accounts that add up to {total}")
            before = seen

    def _size(self, name: str) -> int:
        return sum(map(len, self.transactions[name].parts.values()))

    def _unexplained(self, name: str, seen: Look) -> Iterator[str]:
        """Yield why a look may not show this transaction in part."""
        whole = self.transactions[name]
        for topic, records in whole.parts.items():
            stable, end = seen[topic]
            if any(each >= end for each in whole.markers[topic]):
                yield f"shows a part of {name}, which has not ended in {topic}: {seen[topic]}, {whole.markers[topic]}"
            if all(each.offset < stable for each in records):
                continue
            older = self._begun.get((topic, stable))
            if older is None or older == name:
                yield f"lacks {name} in {topic}, where nothing older begins at {stable}"
            elif any(each < end for each in self.transactions[older].markers[topic]):
                yield f"lacks {name} in {topic} because of {older}, which has ended: {seen[topic]}"


def name_of(each: Lying) -> str:
    """Return the name of the transaction of a record."""
    return each.value.split(" ", 1)[0]


def amount_of(each: Lying) -> int:
    """Return what an account got by a record."""
    words = each.value.split()
    return int(words[2]) if len(words) > 2 else 0
