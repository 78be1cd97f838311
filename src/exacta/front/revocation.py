"""The end of what clients hold by rights and logins that are gone: it comes at once, and not with their next request.

Owns the look at all connections after a change, and when it is taken. What a change may take away, and who leaves a
group, the core says (`exacta.core.access.revocation`); a front knows what its connections hold.

Theory of operation. The engine tells of each event that changes rules or users, whatever has led to it, and the server
of certificates and keys of tokens that are gone. Then all connections are looked at in steps (`turns.py`). One whose
login holds no more is closed. The others give up what they have no right to (`let_go`). At last the memberships are
looked at, of principals whose last connection was closed so, of users that are gone, and of all others by the rules.
Changes that come meanwhile lead to one more look, after `PAUSE_S`. While nothing changes nothing is done.
"""

import logging
from collections.abc import Collection, Iterator
from functools import partial
from typing import Final, Protocol

from exacta.core.access.revocation import may_revoke
from exacta.core.commands import RevokeMemberships
from exacta.core.events import Event, ScramKeysSet
from exacta.core.ids import PrincipalName
from exacta.core.queries.groups import groups_with_members
from exacta.front.broker import Broker
from exacta.front.turns import Steps
from exacta.ports.authorizer import Principal

logger = logging.getLogger("exacta.front")

PAUSE_S: Final = 0.1
"""So much time lies between two looks at least: somebody may change rules one by one."""


class RevocableConnection(Protocol):
    """A connection, as this sees it."""

    principal: Principal

    @property
    def login_has_ended(self) -> bool:
        """True: it was closed because its login holds no more."""

    def login_holds(self) -> bool:
        """Return whether what the client has shown of itself still holds."""

    def end_login(self) -> None:
        """Close the connection at once, because its login holds no more."""

    def let_go(self) -> Iterator[None]:
        """Let go, in steps, of what the client holds and has no right to any more."""


class Revocation:
    """The one of a server. `connections` are those that there are, of all fronts."""

    def __init__(self, broker: Broker, connections: Collection[RevocableConnection]) -> None:
        self._broker = broker
        self._connections = connections
        self._revoked: set[PrincipalName] = set()
        """The principals of connections that were closed because their logins hold no more, and users that are gone."""
        self._is_wanted = self._has_stopped = False
        self._is_looking = False
        """True also until `PAUSE_S` after a look."""
        broker.engine.access_changed = self._hear

    def _hear(self, event: Event) -> None:
        if isinstance(event, ScramKeysSet) and not event.keys:  # its members may have no connection at this moment
            self._revoked.add(Principal(name=event.user).durable_name)
        if may_revoke(event, self._broker.authorizer.terms):
            self.look()

    def start(self) -> None:
        """Look once: a crash may have come between a change and the end of what it takes away."""
        if not self._broker.authorizer.allows_all:
            self.look()

    def look(self) -> None:
        """Look at all connections and memberships, soon."""
        self._is_wanted = True
        if not self._is_looking:
            self._is_looking = True
            self._broker.engine.scheduler.call_soon(self._begin)

    def stop(self) -> None:
        """Look no more: the server stops."""
        self._has_stopped = True

    def left(self, connection: RevocableConnection) -> None:
        """Note that a connection has ended."""
        if connection.login_has_ended:
            self._revoked.add(connection.principal.durable_name)
            self.look()

    def _begin(self) -> None:
        self._is_wanted = False
        self._broker.memory.turns.take(
            self._steps(),
            owner="",
            is_wanted=lambda: not self._has_stopped and self._broker.engine.failed is None,
            failed=partial(logger.exception, "not all that was revoked has ended"),
            ended=self._ended,
            what=lambda: "the end of what was revoked",
        )

    def _ended(self) -> None:
        if not self._has_stopped:
            self._broker.engine.scheduler.call_later(PAUSE_S, self._rested)

    def _rested(self) -> None:
        if self._is_wanted:
            self._begin()
        else:
            self._is_looking = False

    def _steps(self) -> Steps:
        has_rules = not self._broker.authorizer.allows_all
        revoked, self._revoked = self._revoked, set()
        leads = self._broker.cluster.leads
        for connection in list(self._connections):
            if not connection.login_holds():
                connection.end_login()
            elif has_rules:
                yield from connection.let_go()
            yield None
        if revoked:
            revoked -= {each.principal.durable_name for each in self._connections if not each.login_has_ended}
        terms = self._broker.authorizer.terms
        if not leads or (not revoked and terms is None):  # the memberships are the leader's
            return
        for group_id in self._broker.engine.view(groups_with_members):
            command = RevokeMemberships(group_id=group_id, revoked=frozenset(revoked), terms=terms)
            self._broker.engine.submit((command,), lambda answers: None)
            yield None
