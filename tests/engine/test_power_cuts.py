"""The engine over the local journal over a disk that loses power: what a client was told of transactions stays true.

A history of several producers is played on the simulated disk, with notes of what they were told. Then the process is
killed, or the machine stops, after every other call to the disk; the engine recovers from what is left, and every
producer whose transaction was open tries to commit it, unless it had written nothing or asked for an abort.
"""

import random
import re
from functools import partial

import pytest

from exacta.core.commands import EndTransaction
from exacta.core.ids import ProducerEpoch, ProducerId
from exacta.core.replies import TransactionEndedReply
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import Operation, SimulatedDisk
from tests.engine.disk_rig import DiskLoop, DiskRig
from tests.engine.producer import Producer
from tests.sectors import by_chance
from tests.shares import is_whole, share_of

SEGMENT_BYTES = 3000
NAMES = ("x", "y", "z")
PARTITIONS = (0, 1)
_PARTS = re.compile(rb"(([xyz])\d+);|<(commit|abort) (\d+) at \d+>")
"""What lies in a log besides plain records: records of the producers, and markers by producer id."""


def committed(rig: DiskRig) -> dict[bytes, int]:
    """Return how often each record of a committed transaction is there, by the markers that follow them."""
    found: dict[bytes, int] = {}
    for partition in PARTITIONS:
        pending: dict[bytes, list[bytes]] = {}
        for record, writer, outcome, producer_id in _PARTS.findall(rig.records(partition=partition)):
            if record:
                pending.setdefault(writer, []).append(record)
            elif outcome == b"commit":
                for each in pending.pop(NAMES[int(producer_id)].encode(), []):
                    found[each] = found.get(each, 0) + 1
            elif outcome:
                pending.pop(NAMES[int(producer_id)].encode(), None)
    return found


def play(seed: int) -> list[Operation]:
    """Play a history; return the disk's log, with notes of what each producer was told."""
    chance = random.Random(seed)
    rig = DiskRig(SimulatedDisk(), SEGMENT_BYTES)
    rig.topic()
    producers = {name: Producer(rig, name) for name in NAMES}
    rig.disk.note(("pairs", {name: producer.pair for name, producer in producers.items()}))
    written = 0
    is_open: set[str] = set()
    for _ in range(60):
        name = chance.choice(NAMES)
        producer = producers[name]
        if name in is_open and chance.random() < 0.2:
            rig.settle()
            commit = chance.random() < 0.7
            rig.disk.note(("ending", name, commit))
            assert isinstance(producer.end(commit=commit), TransactionEndedReply)
            rig.disk.note(("committed" if commit else "aborted", name))
            is_open.remove(name)
        elif chance.random() < 0.15:
            rig.append(b"plain;", chance.choice(PARTITIONS))
        else:
            if name not in is_open:
                producer.add(*PARTITIONS)
                is_open.add(name)
            written += 1
            payload = f"{name}{written}".encode()
            noted = ("written", name, payload)
            producer.write(payload + b";", chance.choice(PARTITIONS), then=partial(rig.disk.note, noted))
        if chance.random() < 0.7:
            rig.settle()
    rig.settle()
    rig.journal.close()
    return rig.disk.log


class Told:
    """What the producers have been told in a part of the history."""

    def __init__(self, log: list[Operation]) -> None:
        self.pairs: dict[str, tuple[int, int]] = {}
        self.open: dict[str, list[bytes]] = {name: [] for name in NAMES}
        self.committed: list[bytes] = []
        self.aborted: list[bytes] = []
        self.gives_up: set[str] = set()
        """Who has asked for an abort, and has no answer."""
        for operation in log:
            match operation:
                case ("note", ("pairs", pairs)):
                    self.pairs = pairs
                case ("note", ("written", name, payload)):
                    self.open[name].append(payload)
                case ("note", ("ending", name, False)):
                    self.gives_up.add(name)
                case ("note", ("committed", name)):
                    self.committed += self.open[name]
                    self.open[name] = []
                case ("note", ("aborted", name)):
                    self.aborted += self.open[name]
                    self.open[name] = []
                    self.gives_up.remove(name)


def check(disk: SimulatedDisk, told: Told, *, machine_stopped: bool) -> int:
    """Recover, let each producer commit what it takes for written; return how many were refused."""
    rig = DiskRig(disk, SEGMENT_BYTES)
    refused = 0
    promised = list(told.committed)
    for name, payloads in told.open.items():
        producer_id, epoch = told.pairs[name]
        commit = bool(payloads) and name not in told.gives_up  # all must end, or readers wait for them
        command = EndTransaction(
            transactional_id=name,
            producer_id=ProducerId(producer_id),
            producer_epoch=ProducerEpoch(epoch),
            commit=commit,
        )
        reply = rig.ask(command)
        if not commit:
            continue
        if isinstance(reply, TransactionEndedReply):
            promised += payloads
        else:
            assert machine_stopped, "who was only killed goes on with its transaction"
            refused += 1
    rig.settle()
    found = committed(rig)
    broken = [payload for payload in promised if found.get(payload) != 1]
    assert not broken, "what was acknowledged and committed is not there"
    assert not set(told.aborted) & found.keys()
    assert max(found.values(), default=1) == 1
    rig.journal.close()
    assert not rig.failures
    return refused


@pytest.mark.parametrize("seed", range(6))
def test_what_producers_were_told_stays_true_wherever_the_power_goes(seed: int) -> None:
    log = play(seed)
    begun = next(number for number, operation in enumerate(log) if operation[0] == "note")
    refused = 0
    for length in share_of(range(begun + 1, len(log) + 1)):
        chance = random.Random(f"{seed} {length}")  # so that a share throws the dice of the whole
        disk, told = SimulatedDisk.after(log[:length]), Told(log[:length])
        check(disk.restarted(), told, machine_stopped=False)
        share = chance.choice([0.0, 0.5, 0.9, 1.0])
        crashed = disk.crashed(
            keep_sector=by_chance(chance, share),
            grow=chance.random() < 0.5,
            keep_names=chance.random() < 0.5,
        )
        if chance.random() < 0.3:  # and once more, before anything was appended
            open_journal(crashed, DiskLoop().call_soon, segment_bytes=SEGMENT_BYTES).close()
            crashed = crashed.restarted()
        refused += check(crashed, told, machine_stopped=True)
    assert refused or not is_whole(), "or nothing was open when the machine stopped"
