"""A broker that leads, as far as its objects are concerned: it appends to a ledger in memory, and keeps space."""

from collections.abc import Callable
from functools import partial

from exacta.adapters.local.child_process import JobRunner
from exacta.adapters.local.files import Files
from exacta.adapters.local.format import SegmentHeader
from exacta.adapters.local.framing import frame, pack_group
from exacta.adapters.local.worker import Worker
from exacta.adapters.memory import MemoryDatabase, MemoryLedger, MemoryObjects
from exacta.adapters.shared.blocks import Blocks
from exacta.adapters.shared.catalog import Catalog
from exacta.adapters.shared.catalog_loader import CatalogLoader
from exacta.adapters.shared.files import ObjectFiles
from exacta.adapters.shared.groups import check_group
from exacta.adapters.shared.reading import ObjectReader
from exacta.adapters.shared.space import SharedSpace
from exacta.adapters.shared.tail import Tail
from exacta.ports.journal import Failed, JournalDamaged, JournalEntry
from exacta.ports.shared import Appended, CatalogEntry, Claimed, Kind, ObjectStore, TailGroup
from simulation.disk.in_place import InPlace
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.bench import EVERYTHING
from tests.adapters.turns import Turns


class Timer:
    """A call that the test makes by hand."""

    def __init__(self, seconds: float, call: Callable[[], object]) -> None:
        self.seconds = seconds
        self.call: Callable[[], object] | None = call

    def cancel(self) -> None:
        self.call = None


class TimedTurns(Turns):
    """Turns with timers, which run when the test lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: list[Timer] = []

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> Timer:
        timer = Timer(delay, partial(callback, *args))
        self.timers.append(timer)
        return timer

    def fire(self, seconds: float) -> int:
        """Make the calls that wait for so long or less; return how many."""
        due = [each for each in self.timers if each.seconds <= seconds and each.call is not None]
        self.timers = [each for each in self.timers if each not in due]
        for timer in due:
            assert timer.call is not None
            timer.call()
        return len(due)


class Cluster:
    """What outlives all brokers."""

    def __init__(self, store: ObjectStore | None = None) -> None:
        self.turns = TimedTurns()
        self.now_ms = 1_000_000
        self.database = MemoryDatabase(self.turns, lambda: self.now_ms)
        self.store = MemoryObjects()
        self.used_store: ObjectStore = self.store if store is None else store

    @property
    def entries(self) -> list[CatalogEntry]:
        return list(self.database.primary.visible.entries.values())

    def keys(self, kind: Kind) -> list[str]:
        return [each.key for each in self.entries if each.kind is kind]


class Led:
    """One leader, from its claim on."""

    def __init__(
        self,
        cluster: Cluster,
        node_id: int = 1,
        segment_bytes: int = 2000,
        scratch: Files | None = None,
        new_job_runner: Callable[[], JobRunner] | None = None,
    ) -> None:
        self.cluster = cluster
        self.turns = cluster.turns
        self.scratch: Files = SimulatedDisk() if scratch is None else scratch
        self.ledger = MemoryLedger(cluster.database, self.turns)
        self.files = ObjectFiles(self.scratch, cluster.used_store, Blocks(cluster.used_store))
        self.tail = Tail(self.ledger)
        self.files.tail = self.tail
        self.catalog = Catalog(self.files)
        self.worker = Worker("loader")
        self.loader = CatalogLoader(self.catalog, self.ledger, self.worker, self.turns.call_soon)
        self.reader = ObjectReader(
            self.files,
            self.catalog,
            lambda then: self.loader.load(lambda result: then()),
            self.turns.call_soon,
        )
        head = self.turns.wait(self.ledger.read_head)
        claimed = self.turns.wait(lambda done: self.ledger.claim(head, node_id, f"instance {node_id}", done))
        assert isinstance(claimed, Claimed)
        self.epoch = claimed.epoch
        assert self.turns.wait(self.loader.load) is None
        self.loader.end()
        self.position = self.catalog.tail_from
        self.checksum = self.catalog.last_checksum or 0
        self.mark: bytes | None = None
        self._read_tail()
        self.mark = None
        self.lost: list[Failed] = []
        self.damage: list[JournalDamaged] = []
        self.space = SharedSpace(
            self.files,
            self.catalog,
            self.reader,
            self.tail,
            self.ledger,
            epoch=self.epoch,
            new_job_runner=new_job_runner or (lambda: InPlace(self.scratch)),
            new_worker=Worker,
            post=self.turns.call_soon,
            call_later=self.turns.call_later,
            on_lost=self.lost.append,
            on_damage=self.damage.append,
            segment_bytes=segment_bytes,
        )
        self.space.begin()

    def _read_tail(self) -> None:
        while groups := self.turns.wait(lambda done: self.ledger.read_tail(self.position, EVERYTHING, done)):
            for group in groups:
                checked = check_group(group)
                assert checked.previous_checksum == self.checksum
                if checked.mark != self.mark:
                    self._begin(checked.mark)
                self.tail.add(bytes(group.body), checked.checksum)
                for entry in checked.entries:
                    self.catalog.index.add(checked.payload_position + entry.payload_start, entry.rows)
                self.position, self.checksum = checked.end, checked.checksum

    def _begin(self, mark: bytes) -> None:
        self.mark = mark
        self.tail.begin(SegmentHeader(self.position, mark, self.checksum))
        self.catalog.begin_segment(self.position)

    def append(self, *entries: JournalEntry) -> None:
        """Append a group."""
        begins = self.mark is None or self.space.wants_seal
        mark = self.files.random_bytes(8) if begins else self.mark
        assert mark is not None
        framed = frame(entries, self.position, self.catalog.index.last_offset)
        buffers, _, checksum = pack_group(
            mark,
            self.checksum,
            self.position,
            framed.table,
            framed.payload,
            framed.entry_count,
            self.position,
            unsynced=False,
        )
        body = b"".join(buffers)
        group = TailGroup(self.position, framed.end, self.epoch, self.position, self.catalog.version, body)
        assert self.turns.wait(lambda done: self.ledger.append(group, done)) == Appended()
        if begins:
            self._begin(mark)
        self.tail.add(body, checksum)
        for payload_position, rows in framed.rows:
            self.catalog.index.add(payload_position, rows)
        self.position, self.checksum = framed.end, checksum
        self.space.appended(len(entries), began_segment=begins)

    def content(self, stream: int, offset: int = 0) -> bytes:
        """Return all batches of a stream."""
        extents = self.catalog.index.find(stream, offset, EVERYTHING, EVERYTHING)
        read = self.turns.wait(lambda done: self.reader.read(extents, done))
        assert not any(isinstance(each, Failed) for each in read), read
        return b"".join(read)

    def events(self) -> list[bytes]:
        """Return the events of all objects."""
        return list(self.catalog.events(0, self.catalog.tail_from))

    def offloaded(self) -> None:
        """Wait until all that is sealed is an object."""
        self.turns.run_until(lambda: not self.tail.sealed)

    def close(self) -> None:
        """End as a process that stops."""
        self.space.close()
        self.worker.close()
        self.reader.close()
        self.ledger.close()
        self.turns.drain()

    def die(self) -> None:
        """End as a process that is killed: nothing of it goes on, but what it has sent arrives."""
        self.space.close()
        self.worker.close()
        self.reader.close()
        self.ledger.close()
