"""Access rules come and go (KIP-140): each is there once, and goes where a filter matches it."""

from collections.abc import Iterable
from itertools import chain

from exacta.core.commands import CreateAcls, DeleteAcls
from exacta.core.events import AclsCreated, AclsDeleted
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, AclsDeletedReply
from exacta.core.state.state import State
from exacta.core.values.acl import Acl, AclFilter, Pattern, PatternFilter


def create(state: State, command: CreateAcls, now_ms: int) -> Outcome:
    """Make the rules that are not there."""
    new = tuple(each for each in dict.fromkeys(command.acls) if each not in state.acls)
    return Outcome(events=(AclsCreated(acls=new),) if new else (), reply=DONE)


def delete(state: State, command: DeleteAcls, now_ms: int) -> Outcome:
    """Delete what the filters match. A rule that several of them match is in the answer to each."""
    deleted = tuple(tuple(matching(state, each)) for each in command.filters)
    gone = tuple(dict.fromkeys(acl for acls in deleted for acl in acls))
    if len(gone) > state.limits.max_acls_deleted_at_once:
        return Outcome(reply=Rejection.LIMIT_REACHED)
    return Outcome(events=(AclsDeleted(acls=gone),) if gone else (), reply=AclsDeletedReply(deleted=deleted))


def matching(state: State, wanted: AclFilter) -> Iterable[Acl]:
    """Return the rules that a filter matches."""
    return filter(wanted.matches, _candidates(state, wanted))


def _candidates(state: State, wanted: AclFilter) -> Iterable[Acl]:
    """Return the rules among which those are that a filter matches: those for its kind and name, if it names both."""
    if wanted.kind is None or wanted.name is None:
        return state.acls
    index = state.volatile.acl_index
    if wanted.pattern is PatternFilter.MATCH:
        return index.about(wanted.kind, wanted.name)
    literal = index.written_for(wanted.kind, wanted.name, Pattern.LITERAL)
    return chain(literal, index.written_for(wanted.kind, wanted.name, Pattern.PREFIXED))
