"""An engine on a loop that is turned by hand, over the local journal, whose threads run, on a simulated disk."""

import threading
from collections.abc import Callable
from itertools import count
from typing import Any

from exacta.adapters.local import LocalJournal
from exacta.engine.schema import SCHEMA
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import SimulatedDisk
from tests.engine.rig import ManualLoop, Rig


class DiskLoop(ManualLoop):
    """A loop that the journal's threads call, too."""

    def __init__(self) -> None:
        super().__init__()
        self._called = threading.Condition()

    def call_soon(self, callback: Callable[..., Any], *args: Any) -> None:
        with self._called:
            super().call_soon(callback, *args)
            self._called.notify()

    def wait(self) -> None:
        """Wait for the next call, if there is none yet."""
        with self._called:
            assert self._called.wait_for(lambda: bool(self.ready), timeout=60)


class DiskRig(Rig):
    """A rig over a simulated disk; a crash is another rig, over what `disk.crashed()` or `disk.restarted()` leaves."""

    loop: DiskLoop
    fold_every_ms = 0  # no time passes

    def __init__(self, disk: SimulatedDisk, segment_bytes: int = 1 << 20, *, unsynced_writes: bool = True) -> None:
        self.schedule = None
        self.unsynced_writes = unsynced_writes
        self.disk = disk
        self.loop = DiskLoop()
        self.segment_bytes = segment_bytes
        self.failures = []
        self.start()

    def open_journal(self) -> LocalJournal:
        return open_journal(
            self.disk,
            self.loop.call_soon,
            schema=SCHEMA,
            segment_bytes=self.segment_bytes,
            unsynced_writes=self.unsynced_writes,
            elapsed_seconds=count().__next__,  # no sync is quick
        )

    def settle(self) -> None:
        while self.loop.ready or self.engine._writer.in_flight is not None:
            self.loop.wait()
            self.loop.turn()

    def records(self, fetch_offset: int = 0, **options: Any) -> bytes:
        """Read on the journal's threads, where the records no longer lie in its last segment."""
        results = self.fetch(fetch_offset, **options)
        while not results:
            self.loop.wait()
            self.loop.turn()
        assert results[0].rejection is None
        return b"".join(bytes(buffer) for buffer in results[0].records)
