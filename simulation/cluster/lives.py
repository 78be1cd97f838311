"""The lives of one broker's process over a shared log: it begins, opens the log, is paused, killed, and begins again.

A process that was killed begins with empty hands, but for the cache on its disk. What a process does with the log that
it has opened is left to a subclass.
"""

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable

from exacta.adapters.shared.follower import SharedFollower
from exacta.adapters.shared.opening import open_follower
from exacta.adapters.shared.shared_log import Limits, Witness
from exacta.ports.journal import Failed, JournalDamaged
from simulation.cluster.storage import SharedStorage
from simulation.disk.in_place import InPlace
from simulation.disk.simulated import SimulatedDisk
from simulation.loop import SimulatedLoop
from simulation.process import Process
from simulation.trace import Trace

REOPEN_SECONDS = 0.5


class Lives(ABC):
    """One broker; `start` begins a process, `kill` ends it."""

    def __init__(
        self,
        node_id: int,
        loop: SimulatedLoop,
        trace: Trace,
        chance: random.Random,
        storage: SharedStorage,
        limits: Limits,
        complain: Callable[[str], None],
    ) -> None:
        self.node_id = node_id
        self.counts: Counter[str] = Counter()
        self.process: Process | None = None
        self._loop = loop
        self._trace = trace
        self._chance = chance
        self._storage = storage
        self._limits = limits
        self._complain = complain
        self._disk = SimulatedDisk()
        self._disk._random = node_id << 24  # no two brokers draw the same
        self._lives = 0
        self._witness = Witness()

    @property
    def name(self) -> str:
        """The name of this life."""
        return f"{self.node_id}.{self._lives}"

    @abstractmethod
    def _forget(self) -> None:
        """Forget all that was opened."""

    @abstractmethod
    def _follow(self, follower: SharedFollower) -> None:
        """Begin to follow the log; raise OSError or JournalDamaged where it cannot be read."""

    def start(self) -> None:
        """Begin a process."""
        self._lives += 1
        self._trace.note("start", self.name)
        self.process = Process(self._loop, lambda defect: self._complain(f"{self.name} failed: {defect}"))
        self._witness = Witness()
        self.process.run(self._open)

    def kill(self) -> None:
        """End the process at once."""
        if self.process is None:
            return
        self.process.kill()
        self.process = None
        self._forget()
        self._disk.lock_count = 0
        self._storage.ended(self.node_id)

    def pause(self, seconds: float) -> None:
        """Stop the process, and let it go on after so long."""
        process = self.process
        if process is not None:
            process.pause()
            self._loop.call_later(seconds, process.resume)

    def _open(self) -> None:
        process = self.process
        assert process is not None
        self._forget()
        self._disk.lock_count = 0
        ledger, store = self._storage.open(self.node_id, process)
        open_follower(
            ledger,
            store,
            self._disk,
            process,
            process.call_soon,
            node_id=self.node_id,
            instance=self.name,
            witness=self._witness,
            done=self._opened,
            limits=self._limits,
            new_worker=process.worker(lambda: self._chance.uniform(0.0, 0.003)),
            new_job_runner=lambda: InPlace(self._disk),
            elapsed_seconds=process.time,
        )

    def _opened(self, opened: SharedFollower | Failed | JournalDamaged) -> None:
        if isinstance(opened, JournalDamaged):
            self._forget()
            self._complain(f"damaged: {self.name}: {opened}")
        elif isinstance(opened, Failed):
            self._begin_again(opened.reason)
        else:
            try:
                self._follow(opened)
            except (OSError, JournalDamaged) as error:
                opened.close()
                self._begin_again(str(error))

    def _begin_again(self, reason: str) -> None:
        """Begin as a follower, a little later."""
        self._trace.note("begins again", self.name, reason)
        self.counts["begun again"] += 1
        self._forget()
        assert self.process is not None
        self.process.call_later(REOPEN_SECONDS, self._open)
