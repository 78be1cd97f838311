"""Results of the journal's calls, which callbacks get, and errors, which calls raise."""

from typing import NamedTuple, TypeAlias


class JournalError(Exception):
    """The journal cannot be opened or read; the message is meant for the operator."""


class JournalDamaged(JournalError):
    """The stored data contradicts itself, and no crash can explain it: acknowledged data is lost or altered."""


class GroupAppended(NamedTuple):
    """The group is durable, and all that was written before it; the journal now ends at `position`."""

    position: int


class Conflict(NamedTuple):
    """Nothing was written: the journal ends at `position`, not where the caller believed."""

    position: int


class Failed(NamedTuple):
    """The call failed; `reason` is for a log line.

    After a failed append nobody knows what is stored: the journal accepts no further append until it is opened again.
    """

    reason: str


class Cleaned(NamedTuple):
    """Storage was freed: `freed_bytes` of it, or 0 where there is nothing to free now.

    `may_free_more` says that a further call may free more, after a later snapshot or a little later.
    """

    freed_bytes: int
    may_free_more: bool = False


AppendResult: TypeAlias = GroupAppended | Conflict | Failed
