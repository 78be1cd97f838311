"""The content of transactions that clients were allowed to use, so that each write into one asks about what is new."""

from collections.abc import Callable
from typing import Final

MOST_KNOWN: Final = 100_000
"""Names that are known, of which all are forgotten then: one transaction has thousands at most."""

Key = tuple[object, ...]
"""The client, its host, the transaction, and the right."""


class KnownContent:
    """The names that a client was allowed, for each client, transaction and right, until an access rule changes."""

    def __init__(self) -> None:
        self._allowed: dict[Key, frozenset[str]] = {}
        self._count = 0
        self._holds_for = 0

    def allows(self, key: Key, names: frozenset[str], may: Callable[[str], bool], *, acl_changes: int) -> bool:
        """Return whether the client may use all of these names; `may` is asked about those that are not known."""
        if self._holds_for != acl_changes or self._count > MOST_KNOWN:
            self._allowed.clear()
            self._count, self._holds_for = 0, acl_changes
        known = self._allowed.get(key, frozenset())
        new = names - known
        if not all(map(may, new)):
            return False
        if new:
            self._allowed[key] = names
            self._count += len(names) - len(known)
        return True
