"""Planted bugs of a shared log: a world of brokers that does not find one is blind there.

Each is what some ledger or leader could do in good faith, and says which violation shows it.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from exacta.adapters.memory import MemoryLedger
from exacta.adapters.memory.tables import Tables
from exacta.adapters.shared.follower import SharedFollower
from exacta.adapters.shared.journal import SharedJournal
from exacta.adapters.shared.unproven import Unproven
from exacta.ports.journal import AppendResult, Failed, GroupAppended
from exacta.ports.shared import Appended, Superseded


class Canary(NamedTuple):
    """One planted bug."""

    stands_for: str
    shows: str
    """A pattern of the violations by which it is known."""
    seed: int
    """A world that finds it."""
    replaced: tuple[object, str]
    by: Callable[..., Any]

    @contextmanager
    def plant(self) -> Iterator[None]:
        """Let the bug be there while this is entered."""
        owner, name = self.replaced
        with patch.object(owner, name, self.by):
            yield

    def is_seen_in(self, violations: Iterable[str]) -> bool:
        """Say whether one of these is by this bug."""
        return any(re.search(self.shows, violation) for violation in violations)


def _confirm_by_read(self: MemoryLedger, epoch: int, done: Callable[[Any], object]) -> None:
    def look(found: Tables, _: int) -> object:
        return Appended() if epoch == found.epoch else Superseded(found.epoch)

    self._read(look, done)


_take = Unproven.take


def _take_all(self: Unproven) -> object:
    self.prove_all()
    return _take(self)


_judged = SharedJournal._judged


def _take_failure_for_success(self: SharedJournal, answer: Appended | Superseded | Failed) -> AppendResult:
    judged = _judged(self, answer)
    return GroupAppended(self.position) if isinstance(answer, Failed) else judged


async def _read_nothing(self: SharedFollower, epoch: int) -> None:
    self._unproven.forget()


CANARIES = {
    "confirm-by-a-read": Canary(
        "a primary that was replaced still answers reads", "stale read", 3, (MemoryLedger, "confirm"), _confirm_by_read
    ),
    "follower-shows-up-to-the-end-of-the-tail": Canary(
        "what is visible may not be replicated", "logs differ|lost|damaged", 23, (Unproven, "take"), _take_all
    ),
    "failure-is-taken-for-success": Canary(
        "a lost connection does not say that a commit was made",
        "logs differ|lost|gap",
        1,
        (SharedJournal, "_judged"),
        _take_failure_for_success,
    ),
    "leader-does-not-read-the-rest": Canary(
        "an append in flight came before the claim",
        "lost|logs differ",
        2,
        (SharedFollower, "_read_rest"),
        _read_nothing,
    ),
}
