"""The identity of a client by its connection alone, before it has said anything: by its certificate, or nobody."""

import asyncio
from collections.abc import Callable

from msgspec import Struct

from exacta.ports.authorizer import ANONYMOUS, Principal
from exacta.security.exchange import Holds, always


class Identity(Struct, frozen=True):
    """A principal, and for how long its client is taken for it."""

    principal: Principal = ANONYMOUS
    holds: Holds = always
    expires_in_s: float | None = None
    """The time after which it holds no more; None: it has no end."""


NOBODY = Identity()


class NotIdentified(Exception):
    """A client whose certificate names no principal; the message ends the sentence "closing the connection: …"."""


Identify = Callable[[asyncio.BaseTransport], Identity]
"""Returns the identity of a client whose connection has just been made. Raises NotIdentified."""


def anonymous(transport: asyncio.BaseTransport) -> Identity:
    """Return the identity of a client that proves nothing by its connection."""
    return NOBODY
