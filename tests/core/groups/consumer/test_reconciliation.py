"""Leading a member to its target: the table of the package's docstring, over plain values."""

import pytest

from exacta.core.groups.consumer.reconciliation import reconcile
from exacta.core.state.consumer_membership import ConsumerMember, MemberPhase
from exacta.core.values.consumer_groups import TopicPartition
from tests.docstring_tables import docstring_table

TABLE = docstring_table("exacta.core.groups.consumer", "phase of a member \\ it reports")
STILL_OWNS, HAS_GIVEN_UP = TABLE.columns
TOPIC = b"t" * 16
KEEPS, GIVES_UP, GETS = ((TOPIC, index) for index in range(3))
EARLIER, TARGET_EPOCH = 4, 5
CELLS = [(row, column, cell) for row, column, cell in TABLE.cells() if cell != "-"]


def member_of(row: str) -> ConsumerMember:
    """Return a member that has one partition that it keeps, and one that it must give up."""
    if row == "UNREVOKED":
        assigned, revoking = {KEEPS: 3}, {GIVES_UP: 3}
    else:
        assigned, revoking = {KEEPS: 3, GIVES_UP: 3}, {}
    return ConsumerMember(
        member_id="m",
        epoch=TARGET_EPOCH if row == "STABLE, target's epoch" else EARLIER,
        phase=MemberPhase[row.split(",")[0]],
        assigned=assigned,
        revoking=revoking,
    )


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize(("row", "column", "cell"), CELLS)
def test_every_cell(row: str, column: str, cell: str, is_held: bool) -> None:
    member = member_of(row)
    target = frozenset(member.assigned) if cell == "nothing to do" else frozenset({KEEPS, GETS})
    owned: frozenset[TopicPartition] = frozenset({KEEPS, GIVES_UP} if column == STILL_OWNS else {KEEPS})
    after = reconcile(
        member,
        target=target,
        target_epoch=TARGET_EPOCH,
        subscribed={TOPIC},
        owned=owned,
        is_held=lambda _: is_held,
        resubscribed=False,
    )
    match cell:
        case "nothing to do" | "stays":
            assert after is member
        case "-> UNREVOKED":
            assert (after.phase, after.epoch) == (MemberPhase.UNREVOKED, EARLIER)
            assert (set(after.assigned), set(after.revoking)) == ({KEEPS}, {GIVES_UP})
        case "-> the target's epoch":
            assert (after.epoch, after.revoking) == (TARGET_EPOCH, {})
            assert after.phase is (MemberPhase.UNRELEASED if is_held else MemberPhase.STABLE)
            assert after.assigned == ({KEEPS: 3} if is_held else {KEEPS: 3, GETS: TARGET_EPOCH})
        case other:
            raise AssertionError(other)
