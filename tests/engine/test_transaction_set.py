"""A set of transactions ends in one durable step: one journal group, one moment for readers, whole after a crash."""

from typing import Any

import pytest

from exacta.core.apply import apply
from exacta.core.commands import (
    AddGroup,
    AddPartitions,
    CommitTransactionalOffsets,
    EndTransactions,
    InitProducerId,
    OffsetToCommit,
    TransactionToEnd,
)
from exacta.core.event_codec import decode_event
from exacta.core.events import TransactionEnded
from exacta.core.ids import Offset
from exacta.core.replies import DONE, ProducerBoundReply, TransactionsRefused
from exacta.core.snapshot import restore
from exacta.core.state.state import State
from exacta.core.values.limits import Limits
from exacta.core.values.transactions import Phase
from exacta.ports.log import FetchPartition, FetchRequest, FetchResult, Visible
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.turns import Turns
from tests.core.groups.reading import fetch_offsets
from tests.engine.disk_rig import DiskRig
from tests.engine.rig import Rig, batch
from tests.sectors import of_bits

NAMES = ("x", "y", "z")
PARTITIONS = (0, 1)


def write(rig: Rig) -> EndTransactions:
    """Let each of the producers write to both partitions and commit an offset; return the command that ends all."""
    entries = []
    for name in NAMES:
        bound = rig.ask(InitProducerId(transactional_id=name, transaction_timeout_ms=60_000))
        assert isinstance(bound, ProducerBoundReply)
        producer = (bound.producer_id, bound.producer_epoch)
        who: dict[str, Any] = {"transactional_id": name, "producer_id": producer[0], "producer_epoch": producer[1]}
        rig.ask(AddPartitions(**who, partitions=tuple(("t", partition) for partition in PARTITIONS)))
        for partition in PARTITIONS:
            rig.ask(batch(b"%s " % name.encode(), partition, producer, 0, transactional_id=name), payloads=[b"x "])
        rig.ask(AddGroup(**who, group_id=name))
        offsets = (OffsetToCommit(topic="t", partition=0, offset=7),)
        rig.ask(CommitTransactionalOffsets(**who, group_id=name, offsets=offsets))
        entries.append(TransactionToEnd(**who, partitions=tuple(("t", partition) for partition in PARTITIONS)))
    return EndTransactions(transactions=tuple(entries), commit=True)


def stable(rig: Rig) -> list[int]:
    seen = [rig.engine.visible("t", partition) for partition in PARTITIONS]
    return [each.last_stable_offset for each in seen if each is not None]


def committed(state: State) -> list[int | None]:
    return [fetch_offsets(state, name, [("t", [0])], require_stable=False)[0].offset for name in NAMES]


@pytest.mark.exclusive
def test_one_group_of_the_journal_and_one_moment_for_every_reader(rig: Rig) -> None:
    command = write(rig)
    results: list[FetchResult] = []
    wanted = [FetchPartition("t", partition, 0, 1 << 20) for partition in PARTITIONS]
    rig.engine.fetch(FetchRequest(wanted, 10_000, 1, 1 << 20, read_committed=True), results.extend)
    groups_before = len(rig.storage.groups)
    answers = rig.submit(command)
    offsets: list[list[int | None]] = []
    rig.engine.read(lambda state, now_ms: committed(state), offsets.append)
    rig.loop.turn()  # the group goes to the journal
    assert (answers, offsets, results, stable(rig)) == ([], [], [], [0, 0]), "nobody sees anything before it is durable"
    rig.loop.turn()
    assert (answers, offsets, stable(rig)) == ([DONE], [[7, 7, 7]], [6, 6])
    assert [result.visible for result in results] == [Visible(Offset(0), Offset(6), Offset(6))] * 2
    assert all(sum(map(len, result.records)) > 0 for result in results), "the first answer has all of it"
    (group,) = rig.storage.groups[groups_before:]
    assert [type(decode_event(event)) for event in group.events] == [TransactionEnded] * 3


def test_its_group_takes_along_what_else_has_arrived(rig: Rig) -> None:
    command = write(rig)
    groups_before = len(rig.storage.groups)
    before, ended, after = rig.append(b"b"), rig.submit(command), rig.append(b"a")
    rig.loop.settle()
    assert all([before, ended, after])
    (group,) = rig.storage.groups[groups_before:]
    assert len(group.events) == 5


@pytest.mark.parametrize("keep_in_flight", [False, True])
def test_a_crash_leaves_all_or_none_and_the_repeat_ends_them(rig: Rig, keep_in_flight: bool) -> None:
    command = write(rig)
    answers = rig.submit(command)
    rig.loop.turn()
    rig.crash(keep_in_flight=keep_in_flight)
    assert answers == []
    assert stable(rig) == ([6, 6] if keep_in_flight else [0, 0])
    assert rig.ask(command) == DONE
    assert stable(rig) == [6, 6]
    assert rig.ask(command) == DONE, "and once more"


def test_a_refusal_waits_for_what_it_rests_on(rig: Rig) -> None:
    """The fence that it tells of must not be forgotten by a crash."""
    command = write(rig)
    fence = rig.submit(InitProducerId(transactional_id="y", transaction_timeout_ms=60_000))
    refused = rig.submit(command)
    assert (fence, refused) == ([], [])
    rig.loop.settle()
    assert isinstance(refused[0], TransactionsRefused)
    assert stable(rig) == [0, 0]


# --- on a disk --------------------------------------------------------------------------------------------------------


def ended_on_disk() -> SimulatedDisk:
    """Play the same on the simulated disk; return the disk as of the set's own write, not synced yet."""
    rig = DiskRig(SimulatedDisk(), unsynced_writes=False)
    rig.topic()
    command = write(rig)
    log = rig.disk.log
    begun = len(log)
    assert rig.ask(command) == DONE
    rig.close()
    rig.journal.close()
    assert not rig.failures
    writes = [number for number, operation in enumerate(log) if operation[0] == "write" and number >= begun]
    return SimulatedDisk.after(log[: writes[0] + 1])


def phases(disk: SimulatedDisk) -> list[Phase]:
    """Recover from a disk; return where the transactions stand, all of whose parts must stand together."""
    journal = open_journal(disk, Turns().call_soon)
    blob, events = journal.replay()
    state = restore(blob, Limits())
    for event in events:
        apply(state, decode_event(event))
    journal.close()
    found = [state.transactional_ids[name].phase for name in NAMES]
    whole = found == [Phase.COMPLETE_COMMIT] * 3
    assert committed(state) == ([7, 7, 7] if whole else [None] * 3)
    assert [each.last_stable_offset for each in state.partitions.values()] == ([6, 6] if whole else [0, 0])
    return found


@pytest.mark.parametrize("grow", [False, True])
def test_a_crash_at_any_byte_of_the_write_leaves_all_or_none(grow: bool) -> None:
    disk = ended_on_disk()
    size = disk.unsynced_bytes()
    for keep_bytes in range(1, size):
        assert phases(disk.crashed(keep_bytes=keep_bytes, grow=grow, keep_names=True)) == [Phase.ONGOING] * 3
    assert phases(disk.crashed(keep_bytes=size, keep_names=True)) == [Phase.COMPLETE_COMMIT] * 3


def test_a_crash_that_keeps_any_of_the_sectors_leaves_all_or_none() -> None:
    disk = ended_on_disk()
    everything = (1 << disk.unsynced_changes()) - 1
    assert everything >= 3
    for subset in range(everything + 1):
        left = disk.crashed(keep_sector=of_bits(subset), keep_names=True)
        assert phases(left) == [Phase.COMPLETE_COMMIT if subset == everything else Phase.ONGOING] * 3
