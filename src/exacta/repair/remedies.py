"""The ways to put a journal right: whether each is possible, by which plan, and at which price."""

from dataclasses import dataclass, field
from enum import Enum

from exacta.adapters.local.repair import Plan
from exacta.adapters.local.survey import Survey
from exacta.adapters.local.walk import pieces
from exacta.core.ids import PartitionId
from exacta.core.snapshot import snapshot
from exacta.core.state import State
from exacta.repair.gaps import find_gaps, stand_ins_for
from exacta.repair.known_state import Unknown, newest_snapshot, state_at, state_at_the_end
from exacta.repair.losses import losses_of_cut, losses_of_gaps


class Way(Enum):
    """What may be given up: the options of `exacta log repair`."""

    MEND = "--mend"
    """Nothing."""
    DROP = "--drop-damaged-batches"
    """Batches that are lost, and all else is kept."""
    CUT = "--truncate-at-damage"
    """All from the first loss on."""
    DROP_AND_CUT = "--drop-damaged-batches --truncate-at-damage"
    """Batches that are lost, and all from the first event on that is."""


@dataclass(slots=True, kw_only=True)
class Remedy:
    """One way: what it gives up, line by line, or why it is none."""

    way: Way
    plan: Plan | None = None
    losses: list[str] = field(default_factory=list)
    why_not: str = ""


def remedies_of(found: Survey) -> list[Remedy]:
    """Return all the ways, those that are none with the reason."""
    return [_mend(found), _drop(found, cuts=False), _drop(found, cuts=True), _cut(found)]


def _mend(found: Survey) -> Remedy:
    remedy = Remedy(way=Way.MEND)
    if found.lost_compacted or any(each.begin < each.end or found.slots[each.slot].generation for each in found.lost):
        remedy.why_not = "not all that is damaged can be put right"
        return remedy
    try:
        state_at_the_end(found)
    except Unknown as unknown:
        remedy.why_not = str(unknown)
        return remedy
    # A place that is empty, such as that of a last segment of which nothing is known, is filled at no price.
    known_at = found.end if found.lost else None
    blob = None
    if known_at is not None and known_at not in found.snapshots:
        blob = snapshot(state_at(found, known_at))
    remedy.plan = Plan(known_at=known_at, blob=blob)
    return remedy


def _drop(found: Survey, *, cuts: bool) -> Remedy:
    remedy = Remedy(way=Way.DROP_AND_CUT if cuts else Way.DROP)
    end, cut = found.end, None
    if not found.lost and not found.lost_compacted:
        remedy.why_not = "no batch is lost"
        return remedy
    try:
        state = state_at_the_end(found)
        if cuts:
            remedy.why_not = "no event is lost"
            return remedy
    except Unknown as unknown:
        if not cuts:
            remedy.why_not = str(unknown)
            return remedy
        end = cut = unknown.at
        if cut <= found.slots[0].base:
            remedy.why_not = "nothing would be left"
            return remedy
        try:
            state = state_at(found, end)
        except Unknown as other:
            remedy.why_not = str(other)
            return remedy
    # Up to the newest snapshot, if nothing is lost behind it, else up to the end.
    newest = newest_snapshot(found, end)
    is_behind = any(each.begin < each.end and each.end > newest for each in found.lost if each.begin < end)
    known_at = end if is_behind or cut is not None else newest
    if not found.lost:
        known_at = 0  # all of the journal stays; only compacted segments are written anew
    blob = None if known_at in (newest, 0) else snapshot(state)
    if cut is not None and (reason := _compacted_beyond(found, state)):
        remedy.why_not = reason
        return remedy
    gaps = find_gaps(found, state, end)
    plan = Plan(cut=cut, known_at=known_at or None, blob=blob, stand_ins=stand_ins_for(state, gaps))
    remedy.plan = plan
    remedy.losses = losses_of_gaps(found, state, gaps)
    if cut is not None:
        remedy.losses += losses_of_cut(found, state, cut)
    return remedy


def _cut(found: Survey) -> Remedy:
    remedy = Remedy(way=Way.CUT)
    begins = [each.begin for each in found.lost]
    if not begins:
        remedy.why_not = "nothing is lost"
        return remedy
    cut = min(begins)
    if cut <= found.slots[0].base:
        remedy.why_not = "nothing would be left"
        return remedy
    try:
        state = state_at(found, cut)
    except Unknown as unknown:
        remedy.why_not = str(unknown)
        return remedy
    if found.lost_compacted:
        remedy.why_not = "compacted records are lost as well: --drop-damaged-batches gives these up"
        return remedy
    if reason := _compacted_beyond(found, state):
        remedy.why_not = reason
        return remedy
    remedy.plan = Plan(cut=cut)
    remedy.losses = losses_of_cut(found, state, cut)
    return remedy


def _compacted_beyond(found: Survey, state: State) -> str:
    """Return why the journal cannot end where the state is this one; empty: it can."""
    for number in found.numbers_of_compacted:
        for piece in pieces(found, number):
            for entry in piece.entries:
                for row in entry.rows:
                    partition = state.partitions.get(PartitionId(row.stream))
                    if partition is not None and row.last_offset >= partition.next_offset:
                        return "records that were written after the damage are compacted already"
    return ""
