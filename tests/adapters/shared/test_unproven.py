"""Groups of the tail: what is altered is found, and what proves that a group is durable."""

import pytest

from exacta.adapters.local.framing import frame, pack_group
from exacta.adapters.shared.groups import CheckedGroup, check_group
from exacta.adapters.shared.unproven import Contradiction, Unproven
from exacta.ports.journal import JournalDamaged
from exacta.ports.shared import TailGroup
from tests.adapters.turns import batch

MARK = b"12345678"


def row(
    position: int, previous_checksum: int, *, epoch: int = 1, durable: int = 0, data: bytes = b"batch"
) -> TailGroup:
    """Return a group as the tail has it."""
    framed = frame([batch(1, position, data)], position, lambda stream: -1)
    buffers, size, _ = pack_group(
        MARK, previous_checksum, position, framed.table, framed.payload, 1, durable, unsynced=False
    )
    return TailGroup(position, position + size, epoch, durable, 0, b"".join(buffers))


def chain(*epochs: int, durable: int = 0) -> list[CheckedGroup]:
    """Return groups of these epochs that follow one another; the last one has been told of `durable`."""
    groups: list[CheckedGroup] = []
    for number, epoch in enumerate(epochs):
        position, checksum = (groups[-1].end, groups[-1].checksum) if groups else (0, 0)
        told = durable if number == len(epochs) - 1 else 0
        groups.append(check_group(row(position, checksum, epoch=epoch, durable=told)))
    return groups


def unproven(groups: list[CheckedGroup]) -> Unproven:
    held = Unproven(0, 0)
    for group in groups:
        held.add(group)
    return held


def test_every_byte_of_a_group_is_checked():
    sound = row(0, 0)
    assert check_group(sound).entries[0].event == b"event of 1 at 0"
    for at in range(len(sound.body)):
        altered = bytearray(sound.body)
        altered[at] ^= 1
        with pytest.raises(JournalDamaged):
            check_group(sound._replace(body=bytes(altered)))
    for wrong in (sound._replace(position=1), sound._replace(end=sound.end + 1), sound._replace(body=sound.body[:-1])):
        with pytest.raises(JournalDamaged):
            check_group(wrong)


def test_a_group_is_proven_by_a_later_one_that_follows_it():
    groups = chain(1, 1)
    held = unproven(groups)
    assert held.take() == []
    held.add(check_group(row(groups[1].end, groups[1].checksum, durable=groups[1].end)))
    assert held.take() == groups
    assert held.take() == []


def test_the_head_proves_groups_of_its_own_epoch_and_what_they_follow():
    groups = chain(1, 2, 2)
    held = unproven(groups)
    held.hear(3, groups[2].end)
    assert held.take() == [], "the leader of epoch 3 speaks of its own log, which may be another"
    held.hear(2, groups[1].end)
    assert held.take() == groups[:2]
    held.hear(2, groups[2].end + 1)
    assert held.take() == groups[2:]


def test_an_object_proves_the_group_at_its_end_or_contradicts_it():
    groups = chain(1, 1, 1)
    held = unproven(groups)
    held.vouch(groups[2].end + 5, 7)
    held.vouch(groups[1].end, groups[1].checksum)
    assert held.take() == groups[:2]
    with pytest.raises(Contradiction):
        held.vouch(groups[2].end, groups[2].checksum ^ 1)
    held.vouch(groups[2].end, None)
    assert held.take() == groups[2:]


def test_what_does_not_follow_is_a_contradiction_and_is_read_again():
    groups = chain(2, 2)
    held = unproven(groups[:1])
    held.prove_all()
    assert held.take() == groups[:1]
    held.add(groups[1])
    for wrong in (
        row(groups[1].end, groups[1].checksum ^ 1, epoch=2),
        row(groups[1].end + 1, groups[1].checksum, epoch=2),
        row(groups[1].end, groups[1].checksum, epoch=1),
    ):
        with pytest.raises(Contradiction):
            held.add(check_group(wrong))
    held.forget()
    assert held.end == groups[0].end
    other = check_group(row(groups[0].end, groups[0].checksum, epoch=3, data=b"another"))
    held.add(other)
    held.hear(2, other.end)
    assert held.take() == [], "of the epoch that is gone"
