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

    Each refusal of an address waits longer than the one before, and no address has many wrong attempts in a time
    (`exacta.security.backoff`), so that guessing takes time, also for a client that hangs up.
    """
    assert broker.logins is not None
    backoff, address = broker.logins.backoff, share_of(attempted.peer_host)
    while (wait_s := backoff.wait_s(address)) > 0:
        waited = _after(broker, wait_s)
        backoff.waits(address, waited.set_first)
        yield waited
    backoff.begins(address)
    try:
        return (yield from attempt)
    except LoginRefused as error:
        wait_s = backoff.failed(address)
        audit.login_refused(error.user, attempted.mechanism, attempted.peer, attempted.door, str(error))
    except GeneratorExit:  # it has hung up, which is no way around
        backoff.failed(address)
        raise
    finally:
        backoff.ended(address)
    yield _after(broker, wait_s)
    return None


class _Pause(Until):
    """A pause that is ended by what comes first."""

    has_ended = False

    def set_first(self) -> bool:
        """End the pause; return False where it has ended already."""
        if self.has_ended:
            return False
        self.has_ended = True
        self.set()
        return True


def _after(broker: Broker, seconds: float) -> _Pause:
    waited = _Pause()
    broker.engine.scheduler.call_later(seconds, waited.set_first)
    return waited


def let_in(attempted: Attempted, principal: object) -> None:
    """Tell of a login."""
    audit.logged_in(principal, attempted.mechanism, attempted.peer, attempted.door)
