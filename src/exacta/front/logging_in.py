"""One login as a front carries it out: on a thread what takes long, with its line in the audit log and its wait."""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from msgspec import Struct

from exacta.front.broker import Broker
from exacta.front.hosts import share_of
from exacta.front.turns import Until
from exacta.security import audit
from exacta.security.exchange import LoginRefused

T = TypeVar("T")


class Attempted(Struct, frozen=True, kw_only=True):
    """The attempt to log in, for the audit log: by which mechanism, from where, at which door."""

    mechanism: str
    peer: str
    peer_host: str
    door: str


def refused_late(
    broker: Broker, attempted: Attempted, attempt: Generator[Callable[[], Any], Any, T]
) -> Generator[Callable[[], Any] | Until, Any, T | None]:
    """Take the steps of a login, as `Steps`; return its outcome. None: it is refused, and the client has waited.

    Each refusal of an address waits longer than the one before, so that guessing takes time.
    """
    try:
        return (yield from attempt)
    except LoginRefused as error:
        audit.login_refused(error.user, attempted.mechanism, attempted.peer, attempted.door, str(error))
        assert broker.logins is not None
        waited = Until()
        wait_s = broker.logins.backoff.failed(share_of(attempted.peer_host))
        broker.engine.scheduler.call_later(wait_s, waited.set)
        yield waited
        return None


def let_in(attempted: Attempted, principal: object) -> None:
    """Tell of a login."""
    audit.logged_in(principal, attempted.mechanism, attempted.peer, attempted.door)
