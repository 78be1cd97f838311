"""An engine on a loop that is turned by hand, over a journal in memory: every order of events can be had."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from exacta.adapters.memory import MemoryJournal, MemoryStorage
from exacta.core.commands import AppendBatch, Command, CreateTopic
from exacta.core.ids import NO_PRODUCER_ID, Body, ProducerEpoch, ProducerId, TransactionId, TransactionVersion
from exacta.core.values.limits import Limits
from exacta.core.writers import IdempotentWriter
from exacta.engine.engine import Engine, EngineFailed
from exacta.engine.snapshot_schedule import FOLD_EVERY_MS
from exacta.engine.upkeep import Schedule, Upkeep
from exacta.ports.journal import Journal
from exacta.ports.log import ALL_BODIES, FetchPartition, FetchRequest, FetchResult
from exacta.ports.record_format import Buffer, LogEntry, RecordFormat
from exacta.server.assembly import assemble_engine

EXPIRIES = 3
"""Timers that are always there: they look for idle transactional ids, producers and groups."""


class _Handle:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualLoop:
    """A scheduler whose time and turns the test decides."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.ready: deque[Callable[[], Any]] = deque()
        self.later: list[tuple[float, _Handle, Callable[[], Any]]] = []

    def call_soon(self, callback: Callable[..., Any], *args: Any) -> None:
        self.ready.append(lambda: callback(*args))

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> _Handle:
        handle = _Handle()
        self.later.append((self.now_ms + delay * 1000, handle, lambda: callback(*args)))
        return handle

    def turn(self) -> None:
        """Run what is ready now, but not what that makes ready: one turn of the loop."""
        for _ in range(len(self.ready)):
            self.ready.popleft()()

    def settle(self) -> None:
        """Run until nothing is ready."""
        while self.ready:
            self.turn()

    def pass_time(self, ms: int) -> None:
        self.settle()
        end_ms = self.now_ms + ms
        while due := [entry for entry in self.later if entry[0] <= end_ms]:
            entry = min(due, key=lambda entry: entry[0])
            self.later.remove(entry)
            self.now_ms = max(self.now_ms, int(entry[0]))
            if not entry[1].cancelled:
                entry[2]()
            self.settle()
        self.now_ms = end_ms


class PlainRecords:
    """Batches and markers that a test can read: `offset:bytes` is what is stored."""

    def place(self, batch: Buffer, base_offset: int) -> list[Buffer]:
        return [batch]

    def entries(self, batches: Buffer, aborted: Iterable[tuple[int, int, int]]) -> list[LogEntry]:
        raise NotImplementedError("nobody reads these as entries")

    def magic(self, batch: Buffer) -> int:
        raise NotImplementedError("nobody asks how these are encoded")

    def marker(
        self, base_offset: int, producer_id: int, producer_epoch: int, *, commit: bool, timestamp_ms: int
    ) -> bytes:
        return f"<{'commit' if commit else 'abort'} {producer_id} at {base_offset}>".encode()

    def move(self, batches: memoryview, first_offsets: Sequence[int], append_time_ms: int) -> None:
        """Leave them as they are: they do not say where they lie."""

    def sound(self, batches: Buffer, first_offsets: Sequence[int]) -> tuple[int, str]:
        return len(batches), ""


class Rig:
    """One storage, and the engine that runs over it now; `crash` begins again from the storage."""

    format: RecordFormat = PlainRecords()
    limits = Limits()
    fold_every_ms = FOLD_EVERY_MS
    is_exclusive = True

    def __init__(
        self,
        segment_bytes: int = 1 << 20,
        *,
        unsynced_writes: bool = True,
        schedule: Schedule | None = None,
        is_exclusive: bool = True,
    ) -> None:
        self.schedule = schedule
        self.is_exclusive = is_exclusive
        self.unsynced_writes = unsynced_writes
        self.storage = MemoryStorage()
        self.loop = ManualLoop()
        self.segment_bytes = segment_bytes
        self.failures: list[EngineFailed] = []
        self.answers: list[object] = []
        self.start()

    def start(self) -> None:
        """Recover an engine from what is stored; one that runs already goes on beside it."""
        self.journal = self.open_journal()
        self.engine: Engine = assemble_engine(
            self.journal,
            self.loop,
            records=self.format,
            clock=lambda: self.loop.now_ms,
            limits=self.limits,
            on_failure=self.failures.append,
            schedule=self.schedule,
            fold_every_ms=self.fold_every_ms,
        )

    @property
    def upkeep(self) -> Upkeep:
        """What the engine does by its schedule."""
        assert self.engine._upkeep is not None
        return self.engine._upkeep

    def open_journal(self) -> Journal:
        return MemoryJournal(
            self.storage,
            self.loop.call_soon,
            segment_bytes=self.segment_bytes,
            unsynced_writes=self.unsynced_writes,
            is_exclusive=self.is_exclusive,
        )

    def settle(self) -> None:
        """Run until nothing is ready and nothing is being written."""
        self.loop.settle()

    def close(self) -> None:
        """Stop the engine cleanly; the journal is still open then."""
        closed: list[bool] = []
        self.engine.close(lambda: closed.append(True))
        self.settle()
        assert closed == [True]

    def crash(self, *, keep_in_flight: bool = False) -> None:
        """Lose what is in memory, and the group in flight unless the disk got it."""
        if keep_in_flight:
            self.storage.keep_in_flight()
        self.loop.ready.clear()
        self.loop.later.clear()
        self.start()
        if not self.is_exclusive:
            self.loop.settle()  # nobody is served before the lead is taken

    def stop_machine(self, lost: int | None = None) -> None:
        """Lose the last groups that were not synced, too: all, or this many."""
        self.storage.stop_machine(lost)
        self.crash()

    def submit(self, *commands: Command, payloads: list[bytes | None] | None = None) -> list[object]:
        """Submit; the returned list is filled when the answers come."""
        answers: list[object] = []
        self.engine.submit(commands, answers.extend, payloads)
        return answers

    def ask(self, *commands: Command, payloads: list[bytes | None] | None = None) -> object:
        """Submit one command and run until it is answered."""
        answers = self.submit(*commands, payloads=payloads)
        self.settle()
        assert len(answers) == 1, answers
        return answers[0]

    def topic(self, name: str = "t", partition_count: int = 2) -> None:
        self.ask(CreateTopic(topic=name, topic_id=b"0" * 16, partition_count=partition_count))

    def append(self, payload: bytes = b"batch", partition: int = 0, **fields: Any) -> list[object]:
        return self.submit(batch(payload, partition, **fields), payloads=[payload])

    def fetch(
        self,
        fetch_offset: int = 0,
        *,
        partition: int = 0,
        read_committed: bool = True,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        bodies: frozenset[Body] = ALL_BODIES,
    ) -> list[FetchResult]:
        results: list[FetchResult] = []
        wanted = FetchPartition("t", partition, fetch_offset, max_bytes)
        request = FetchRequest([wanted], max_wait_ms, min_bytes, max_bytes, read_committed, bodies)
        self.engine.fetch(request, results.extend)
        return results

    def records(self, fetch_offset: int = 0, **options: Any) -> bytes:
        (result,) = self.fetch(fetch_offset, **options)
        assert result.rejection is None, result
        return b"".join(bytes(buffer) for buffer in result.records)


def batch(
    payload: bytes,
    partition: int = 0,
    producer: tuple[int, int] = (-1, -1),
    sequence: int = -1,
    *,
    transactional_id: str | None = None,
    version: TransactionVersion = TransactionVersion.V1,
    count: int = 1,
    topic: str = "t",
    timestamp_ms: int = 0,
    transaction: TransactionId | None = None,
    handle_producer_id: ProducerId | None = None,
    body: Body = Body.KAFKA,
) -> AppendBatch:
    writer = IdempotentWriter(
        producer_id=ProducerId(producer[0]),
        producer_epoch=ProducerEpoch(producer[1]),
        base_sequence=sequence,
        transactional_id=transactional_id,
        version=version,
    )
    return AppendBatch(
        topic=topic,
        partition=partition,
        record_count=count,
        size=len(payload),
        max_timestamp_ms=timestamp_ms,
        body=body,
        writer=None if producer[0] < 0 else writer,
        transaction=transaction,
        handle_producer_id=NO_PRODUCER_ID if handle_producer_id is None else handle_producer_id,
    )
