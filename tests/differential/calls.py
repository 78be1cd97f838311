"""A request on its way: what is sent, and what its answer is in words that both brokers share.

Each kind of step has a function here that makes its request, or, where it is more than one, does it all itself. They
stand beside each other by subject (`transactions.py`, `members.py`, ...), and find each other by the step's class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.schema import Message
from tests.differential.machine import Taking

Answer = tuple[Any, ...]
"""The name of an error code, and what else is compared."""
WAITS = "waits"
"""Instead of an error code: the broker has not answered, and need not by now."""
HANGS_UP = "hangs up"
SILENT = "does not answer"


class Place(NamedTuple):
    """An offset that a broker has answered."""

    partition: int
    offset: int


@dataclass(kw_only=True)
class Call:
    """A request; `code` finds the error code that says whether to ask again, `describe` says what came."""

    request: Message
    version: int
    describe: Callable[[Any], Answer]
    code: Callable[[Any], int] = lambda reply: reply.error_code
    parks: bool = False
    """The broker may answer later, when somebody else has spoken."""
    learn: Callable[[Any], None] = lambda reply: None
    """Note what the answer gives to the client, before anything is put into words."""
    ends: bool = False
    """It may end a transaction."""


HOW = Taking()
"""What takes a step returns the call that is to be made, or the answer to one that it has made."""
sends = HOW.by


def name_of(code: int) -> str:
    """Return an error code's name."""
    return ErrorCode(code).name
