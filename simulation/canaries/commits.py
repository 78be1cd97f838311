"""Planted bugs of commit numbers."""

from typing import Any

from msgspec.structs import replace

from exacta.core import snapshot
from exacta.core.apply import _APPLY
from exacta.core.events import TransactionEnded
from simulation.canaries import Replacements, canary


@canary("commit numbers begin again with each snapshot, and are given twice", shows=r"commits: ")
def commit_numbers_forgotten() -> Replacements:
    decoded = snapshot._decoded

    def without(blob: bytes) -> Any:
        return replace(decoded(blob), commit_number=0)

    return [(snapshot, "_decoded", without)]


@canary("a transaction that only lets staged messages enter has no commit number", shows=r"commits: ")
def entering_is_no_commit() -> Replacements:
    ended = _APPLY[TransactionEnded]

    def without_markers(state: Any, event: TransactionEnded) -> None:
        ended(state, event)
        state.commit_number -= bool(event.entries and not event.markers)

    return [(_APPLY, TransactionEnded, without_markers)]
