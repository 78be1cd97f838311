"""PLAIN: one message with name and password (RFC 4616).

It reads bytes before a login.
"""

from typing import NamedTuple


class PlainError(Exception):
    """The message is not what it must be; the text is one sentence, without the password."""


class PlainLogin(NamedTuple):
    """A name and a password that came in clear text."""

    user: str
    password: str

    def __repr__(self) -> str:
        """Show no password."""
        return f"PlainLogin(user={self.user!r})"


def parse(message: bytes) -> PlainLogin:
    """Read the client's message; raises `PlainError`."""
    try:
        parts = bytes(message).decode().split("\0")
    except UnicodeDecodeError:
        raise PlainError("it sent something that is not text") from None
    if len(parts) != 3:
        raise PlainError("it sent something other than two names and a password")
    other, user, password = parts
    if not user or not password:
        raise PlainError("it sent no name or no password")
    if other and other != user:
        raise PlainError("it asks to act for another user")
    return PlainLogin(user, password)
