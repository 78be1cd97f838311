"""The commands of access rules and of users, and what decides each; `core/decide.py` has the table of all commands."""

from collections.abc import Callable
from typing import Any

from exacta.core.access import acls, first_user, revocation, scram
from exacta.core.commands import (
    AlterScramKeys,
    Command,
    CreateAcls,
    DeleteAcls,
    MakeFirstUser,
    RevokeMemberships,
)
from exacta.core.outcome import Outcome
from exacta.core.state.state import State

RULES: dict[type[Command], Callable[[State, Any, int], Outcome]] = {
    CreateAcls: acls.create,
    DeleteAcls: acls.delete,
    AlterScramKeys: scram.alter,
    MakeFirstUser: first_user.make,
    RevokeMemberships: revocation.revoke,
}
