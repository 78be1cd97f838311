"""The ways to put a journal right: whether each is possible, by which plan, and at which price."""

from collections.abc import Callable
from enum import Enum

from msgspec import Struct

from exacta.adapters.local.damage.repair_copy import Plan
from exacta.adapters.local.damage.segment_walk import pieces
from exacta.adapters.local.damage.survey import Survey
from exacta.core.ids import PartitionId
from exacta.core.snapshot import snapshot
from exacta.core.state.state import State
from exacta.repair.gaps import find_gaps, stand_ins_for
from exacta.repair.known_state import Unknown, newest_snapshot, state_at, state_at_the_end
from exacta.repair.losses import losses_of_cut, losses_of_gaps


class Way(Enum):
    """The things that may be given up, by the options of `exacta log repair`."""

    MEND = "--mend"
    """Nothing is given up."""
    DROP = "--drop-damaged-batches"
    """The batches that are lost are given up, and all else is kept."""
    CUT = "--truncate-at-damage"
    """All from the first loss on is given up."""
    DROP_AND_CUT = "--drop-damaged-batches --truncate-at-damage"
    """The batches that are lost are given up, and so is all from the first lost event on."""


class Remedy(Struct, kw_only=True):
    """One way: its losses, line by line, or the reason why it is no way."""

    way: Way
    plan: Plan | None = None
    losses: list[str] = []
    why_not: str = ""


class _NoRemedy(Exception):
    """This remedy does not lead there; the message says why."""


def remedies_of(found: Survey) -> list[Remedy]:
    """Return all the ways, those that are none with the reason."""
    at_the_end: State | Unknown
    try:
        at_the_end = state_at_the_end(found)
    except Unknown as unknown:
        at_the_end = unknown
    return [
        _remedy(Way.MEND, lambda: _mend(found, at_the_end)),
        _remedy(Way.DROP, lambda: _drop(found, at_the_end)),
        _remedy(Way.DROP_AND_CUT, lambda: _drop_and_cut(found, at_the_end)),
        _remedy(Way.CUT, lambda: _cut(found)),
    ]


def _remedy(way: Way, make: Callable[[], tuple[Plan, list[str]]]) -> Remedy:
    try:
        plan, losses = make()
    except (_NoRemedy, Unknown) as reason:
        return Remedy(way=way, why_not=str(reason))
    return Remedy(way=way, plan=plan, losses=losses)


def _mend(found: Survey, at_the_end: State | Unknown) -> tuple[Plan, list[str]]:
    if found.lost_compacted or any(each.begin < each.end or found.slots[each.slot].generation for each in found.lost):
        raise _NoRemedy("not all that is damaged can be put right")
    if isinstance(at_the_end, Unknown):
        raise at_the_end
    # A place that is empty, such as the place of a last segment of which nothing is known, is filled at no price.
    known_at = found.end if found.lost else None
    blob = snapshot(at_the_end) if known_at is not None and known_at not in found.snapshots else None
    return Plan(known_at=known_at, blob=blob), []


def _drop(found: Survey, at_the_end: State | Unknown) -> tuple[Plan, list[str]]:
    _check_that_batches_are_lost(found)
    if isinstance(at_the_end, Unknown):
        raise at_the_end
    # Up to the newest snapshot, if nothing is lost behind it, else up to the end.
    end, newest = found.end, newest_snapshot(found, found.end)
    is_behind = any(each.begin < each.end and each.end > newest for each in found.lost if each.begin < end)
    known_at = end if is_behind else newest
    if not found.lost:
        known_at = 0  # all of the journal stays; only compacted segments are rewritten
    gaps = find_gaps(found, at_the_end, end)
    blob = None if known_at in (newest, 0) else snapshot(at_the_end)
    plan = Plan(known_at=known_at or None, blob=blob, stand_ins=stand_ins_for(at_the_end, gaps))
    return plan, losses_of_gaps(found, at_the_end, gaps)


def _drop_and_cut(found: Survey, at_the_end: State | Unknown) -> tuple[Plan, list[str]]:
    _check_that_batches_are_lost(found)
    if not isinstance(at_the_end, Unknown):
        raise _NoRemedy("no event is lost")
    cut = at_the_end.at
    state = _state_at_cut(found, cut)
    _check_that_nothing_is_compacted_beyond(found, state)
    gaps = find_gaps(found, state, cut)
    # Where nothing is lost, all before the cut stays as it is.
    known_at = cut if found.lost else 0
    blob = None if known_at in (newest_snapshot(found, cut), 0) else snapshot(state)
    plan = Plan(cut=cut, known_at=known_at or None, blob=blob, stand_ins=stand_ins_for(state, gaps))
    return plan, losses_of_gaps(found, state, gaps) + losses_of_cut(found, state, cut)


def _cut(found: Survey) -> tuple[Plan, list[str]]:
    if not found.lost:
        raise _NoRemedy("nothing is lost")
    cut = min(each.begin for each in found.lost)
    state = _state_at_cut(found, cut)
    if found.lost_compacted:
        raise _NoRemedy("compacted records are lost as well: --drop-damaged-batches gives these up")
    _check_that_nothing_is_compacted_beyond(found, state)
    return Plan(cut=cut), losses_of_cut(found, state, cut)


def _check_that_batches_are_lost(found: Survey) -> None:
    if not found.lost and not found.lost_compacted:
        raise _NoRemedy("no batch is lost")


def _state_at_cut(found: Survey, cut: int) -> State:
    if cut <= found.slots[0].base:
        raise _NoRemedy("nothing would be left")
    return state_at(found, cut)


def _check_that_nothing_is_compacted_beyond(found: Survey, state: State) -> None:
    """Raise where the journal cannot end where the state is this one."""
    for number in found.numbers_of_compacted:
        for piece in pieces(found, number):
            for entry in piece.entries:
                for row in entry.rows:
                    partition = state.partitions.get(PartitionId(row.stream))
                    if partition is not None and row.last_offset >= partition.next_offset:
                        raise _NoRemedy("records that were written after the damage are compacted already")
