"""Groups that were read of the tail, and are not known to be durable yet.

A ledger may show a group that it loses again: its primary has not replicated it, and another takes over. So a follower
takes a group in only where something proves that it is durable:

- a later group whose leader had been told so. The chain of checksums says that it speaks of this very group;
- the head, for groups of the epoch that the head speaks of: one leader has appended them, each position once. Of groups
  of earlier epochs it proves nothing. Another group may have taken their place meanwhile.

A group that does not follow what was read before contradicts it. What is not proven yet is then read again.
"""

from collections import deque
from itertools import takewhile

from exacta.adapters.shared.groups import CheckedGroup
from exacta.ports.journal import JournalDamaged


class Contradiction(JournalDamaged):
    """The ledger shows another log than it did before. If it goes on so, it has lost what was durable."""


class Unproven:
    """Hold what follows the position up to which a broker has followed the log."""

    def __init__(self, position: int, checksum: int | None, epoch: int = 0) -> None:
        """Begin behind a group with this checksum and epoch, which are proven; None: its checksum is not known."""
        self._proven = (position, checksum, epoch)
        self._last = self._proven
        self._groups: deque[CheckedGroup] = deque()
        self._durable = position

    @property
    def end(self) -> int:
        """The position after the last group."""
        return self._last[0]

    def add(self, group: CheckedGroup) -> None:
        """Take in the next group; raise Contradiction if it does not follow."""
        position, checksum, epoch = self._last
        follows = group.position == position and checksum in (None, group.previous_checksum)
        if not follows or group.epoch < epoch:
            raise Contradiction(f"the group at position {group.position} does not follow what was there before")
        self._groups.append(group)
        self._last = (group.end, group.checksum, group.epoch)
        self._durable = max(self._durable, group.durable)

    def hear(self, epoch: int, durable: int) -> None:
        """Hear from the head that all up to `durable` is durable, as the leader of this epoch was told."""
        ends = [group.end for group in self._groups if group.epoch == epoch and group.end <= durable]
        self._durable = max([self._durable, *ends])

    def vouch(self, position: int, checksum: int | None) -> None:
        """Hear from the catalog that the log is durable up to the end of the group with this checksum; None: of any.

        Raises Contradiction if another group ends there.
        """
        for group in self._groups:
            if group.end == position:
                if checksum not in (None, group.checksum):
                    raise Contradiction(f"the group at position {group.position} is another than objects are made of")
                self._durable = max(self._durable, position)

    def prove_all(self) -> None:
        """Take all groups for durable."""
        self._durable = self.end

    def proven(self) -> list[CheckedGroup]:
        """Return the groups that are proven now."""
        return list(takewhile(lambda group: group.end <= self._durable, self._groups))

    def take(self) -> list[CheckedGroup]:
        """Return the groups that are proven now, and go on behind them."""
        taken = self.proven()
        for _ in taken:
            self._groups.popleft()
        if taken:
            last = taken[-1]
            self._proven = (last.end, last.checksum, last.epoch)
        return taken

    def forget(self) -> None:
        """Forget what is not proven, so that it is read again."""
        self._groups.clear()
        self._last = self._proven
        self._durable = self._proven[0]
