"""The fold of the events of access rules and of users; `core/apply.py` has the table of all events."""

from collections.abc import Callable
from typing import Any

from exacta.core.events import AclsCreated, AclsDeleted, Event, ScramKeysSet
from exacta.core.state import weights
from exacta.core.state.state import State
from exacta.core.values.usage import Table


def _created(state: State, event: AclsCreated) -> None:
    for acl in event.acls:
        state.acls[acl] = None
        state.volatile.acl_index.add(acl)
        state.volatile.usage[Table.ACLS].change(weights.acl_key(acl), weights.acl(acl))


def _deleted(state: State, event: AclsDeleted) -> None:
    for acl in event.acls:
        del state.acls[acl]
        state.volatile.acl_index.remove(acl)
        state.volatile.usage[Table.ACLS].change(weights.acl_key(acl), -weights.acl(acl))


def _keys_set(state: State, event: ScramKeysSet) -> None:
    before = weights.user(event.user, state.scram_keys.get(event.user, ()))
    state.volatile.usage[Table.USERS].change(event.user, weights.user(event.user, event.keys) - before)
    if event.keys:
        state.scram_keys[event.user] = event.keys
    else:
        state.scram_keys.pop(event.user, None)


FOLDS: dict[type[Event], Callable[[State, Any], None]] = {
    AclsCreated: _created,
    AclsDeleted: _deleted,
    ScramKeysSet: _keys_set,
}
