"""Examines a journal, and carries a remedy out: copied, checked as a server would find it, then put in place."""

from typing import cast

import msgspec
from msgspec import Struct

from exacta.adapters.local.damage.inspection import Finding, SoundGroup, inspect
from exacta.adapters.local.damage.repair import put_in_place
from exacta.adapters.local.damage.repair_copy import RepairCopy, remove_copy, write_copy
from exacta.adapters.local.damage.survey import Lost, Survey
from exacta.adapters.local.damage.surveyor import survey
from exacta.adapters.local.files import Files
from exacta.adapters.local.layout import begin_of_replay, lay_out
from exacta.adapters.local.snapshots.snapshot_files import load_latest
from exacta.core.apply import apply
from exacta.core.event_codec import decode_event
from exacta.core.snapshot import restore
from exacta.core.values.limits import Limits
from exacta.engine.schema import SCHEMA
from exacta.ports.journal import JournalError
from exacta.repair.known_state import is_batch
from exacta.repair.remedies import Remedy, remedies_of


class NotRepaired(JournalError):
    """The remedy did not come to a journal that is sound; nothing was changed."""


class Examination(Struct):
    """All that was found. `damage` is what is lost, one line each; `is_sound`: there is nothing to do."""

    found: Survey
    findings: list[Finding]
    damage: list[str]
    remedies: list[Remedy]

    @property
    def is_sound(self) -> bool:
        """Return whether verifying finds nothing."""
        return not self.findings


def examine(files: Files) -> Examination:
    """Look at a locked directory, and change nothing. Raises OSError and UnsupportedFormat."""
    findings = [each for each in inspect(files, SCHEMA) if isinstance(each, Finding)]
    found = survey(files, is_batch, SCHEMA)
    damage = [_told(each) for each in found.lost if each.begin < each.end]
    damage += [f"{each.name}, byte {each.offset}: {each.reason}" for each in found.lost_compacted]
    return Examination(found, findings, damage, remedies_of(found))


def apply_remedy(examined: Examination, remedy: Remedy, files: Files, keep: Files) -> list[str]:
    """Rewrite the journal and change over; return the lines of the report.

    Raises OSError, or NotRepaired; nothing has changed then, unless the change over had begun: then the journal is not
    opened before the repair is run again, which finishes it.
    """
    assert remedy.plan is not None
    copied = write_copy(examined.found, remedy.plan)
    try:
        _check(copied)
    except BaseException:
        remove_copy(files)
        raise
    lines = [f"put right: {each.name}, byte {each.offset}: {each.what}" for each in examined.found.mended]
    lines += [f"given up: {line}" for line in remedy.losses]
    put_in_place(files, copied, keep, "\n".join(lines))
    return lines


def _told(lost: Lost) -> str:
    return f"{lost.name}, byte {lost.offset}: {lost.reason}; positions {lost.begin} to {lost.end} are lost"


def _check(copied: RepairCopy) -> None:
    """Raise NotRepaired unless a server would start on what is copied, and find nothing wrong with it."""
    view = cast("Files", copied.view)
    findings = [each for each in inspect(view, SCHEMA) if not isinstance(each, SoundGroup)]
    if findings:
        raise NotRepaired(f"what was made is not sound: {findings[0].name}: {findings[0].reason}; nothing was changed")
    segments = lay_out(view, view.names()).segments
    position, blob = load_latest(view)
    first = begin_of_replay(segments, position)
    assert first is not None
    replayed = {segment.name for segment in segments[first:]}
    state = restore(blob, Limits())
    for place in inspect(view, SCHEMA):
        if isinstance(place, SoundGroup) and place.name in replayed and place.group.position >= position:
            for entry in place.group.entries:
                try:
                    apply(state, decode_event(entry.event))
                except (msgspec.DecodeError, LookupError, ValueError, AttributeError) as error:
                    reason = f"what was made cannot be replayed: {place.name}: {error!r}; nothing was changed"
                    raise NotRepaired(reason) from error
