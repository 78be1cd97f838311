"""Snapshots of the state, with which a replay begins."""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

from exacta.ports.journal.results import Failed

Fold: TypeAlias = Callable[[bytes | None, Iterator[bytes]], bytes]
"""Makes a snapshot of the one before (None: there is none) and the events after it, oldest first."""


class JournalSnapshots(Protocol):
    """Store snapshots of the state beside the events that led to it."""

    @property
    def wants_snapshot(self) -> bool:
        """True if a snapshot should be saved: a replay would be long by now, or `clean` could free more after one.

        It becomes False again once a snapshot is offered.
        """

    def save_snapshot(self, blob: bytes, position: int, done: Callable[[Failed | None], None] | None = None) -> None:
        """Store the state as of `position`, so that a later replay starts there.

        The journal must end at `position` and be durable up to it; else ValueError is raised. A snapshot that fails
        loses nothing: the one before stays in force, and `done` gets `Failed`.
        """

    def fold_snapshot(self, fold: Fold, done: Callable[[Failed | None], None]) -> None:
        """Store a snapshot of all that is durable now, made from the latest one and the events since it.

        `fold` must be a function that can be imported: it may be called in another process. Failures are as for
        `save_snapshot`. At most one call may be under way; it sets `wants_snapshot` back.
        """
