"""The audit log (logger `exacta.audit`): one line for each login, and for each login that is refused.

A change of users and access rules has two: who asks for it, and what became of it, which its event tells
(`engine/event_lines.py`).

What a client has sent is written with escapes and cut, so that nobody writes lines of their own.

It reads bytes before a login.
"""

import logging

logger = logging.getLogger("exacta.audit")

_MOST_CHARACTERS = 256


def logged_in(principal: object, mechanism: str, peer: str, door: str) -> None:
    """Tell of a login."""
    logger.info("%s logged in by %s from %s at the door %s", shown(str(principal)), mechanism, peer, door)


def login_refused(user: str, mechanism: str, peer: str, door: str, reason: str) -> None:
    """Tell of a login that was refused."""
    name = shown(user) if user else "a client that gave no name"
    logger.warning("the login of %s by %s from %s at the door %s was refused: %s", name, mechanism, peer, door, reason)


def asked(principal: object, peer: str, what: str) -> None:
    """Tell who asks for a change, before it is made."""
    logger.info("%s asks from %s to change %s", shown(str(principal)), peer, what)


def shown(text: str) -> str:
    """Return a client's text on one line: with escapes for what is not printable, and cut."""
    cut = text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in cut)
