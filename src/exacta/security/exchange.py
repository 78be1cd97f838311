"""One login on its way, whatever its mechanism and whatever protocol carries it.

Theory of operation. An exchange is a generator, which knows nothing of frames. It is sent the client's messages. It
yields what to answer (`bytes`), or work for a thread (a function), whose outcome it is sent. It returns a `LoggedIn`,
or raises `LoginRefused`. Each front carries the messages in its own way.
"""

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from msgspec import Struct

from exacta.core.values.users import problem_of
from exacta.ports.authorizer import Principal


class LoginRefused(Exception):
    """The client is not who it says. The text is for the operator's log, and never for the client."""

    def __init__(self, reason: str, user: str = "") -> None:
        super().__init__(reason)
        self.user = user
        """The name that the client has given; empty: it has given none."""


Holds: TypeAlias = Callable[[], bool]
"""Returns whether what a client has shown still holds, in this step."""


def always() -> bool:
    """Return that what a client has shown holds until its connection ends."""
    return True


class LoggedIn(Struct, frozen=True, kw_only=True):
    """The end of an exchange. Making one raises `LoginRefused` where the name may be nobody's."""

    principal: Principal
    expires_ms: int | None = None
    """The time since 1970 at which what the client has shown holds no more; None: it has no such time."""
    holds: Holds = always
    """Returns whether what the client has shown still holds: the keys of its password, or the key of its token."""
    last_message: bytes = b""
    """The message that ends the exchange on the server's side."""

    def __post_init__(self) -> None:
        """Let nobody in by a name that may be nobody's."""
        problem = problem_of(self.principal.name)
        if problem is not None:
            raise LoginRefused(f"its name {problem}", self.principal.name)


Exchange: TypeAlias = Generator[bytes | Callable[[], Any], Any, LoggedIn]
"""One login on its way. It begins with `next`, which yields nothing of use."""

Attempt: TypeAlias = Generator[Callable[[], Any], Any, LoggedIn]
"""A login whose client has said everything already: it yields work for a thread, and ends as an `Exchange`."""
