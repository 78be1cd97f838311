"""The principal of a client by its connection alone, before it has said anything: by its certificate, or nobody."""

import asyncio
from collections.abc import Callable

from exacta.ports.authorizer import ANONYMOUS, Principal


class NotIdentified(Exception):
    """A client whose certificate names no principal; the message ends the sentence "closing the connection: …"."""


Identify = Callable[[asyncio.BaseTransport], Principal]
"""Returns the principal of a client whose connection has just been made. Raises NotIdentified."""


def anonymous(transport: asyncio.BaseTransport) -> Principal:
    """Return the principal of a client that proves nothing by its connection."""
    return ANONYMOUS
