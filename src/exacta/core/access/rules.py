"""The commands of access rules and of users, and what decides each; `core/decide.py` has the table of all commands."""

from collections.abc import Callable
from typing import Any

from exacta.core.access import acls, revocation, scram
from exacta.core.commands import AlterScramKeys, Command, CreateAcls, DeleteAcls, RevokeMemberships
from exacta.core.outcome import Outcome
from exacta.core.state.state import State

RULES: dict[type[Command], Callable[[State, Any, int], Outcome]] = {
    CreateAcls: acls.create,
    DeleteAcls: acls.delete,
    AlterScramKeys: scram.alter,
    RevokeMemberships: revocation.revoke,
}
