"""The base of all commands; `commands.py` has them all."""

from typing import ClassVar

from msgspec import Struct

from exacta.core.ids import Ticket
from exacta.core.promises import Promise


class Command(Struct, frozen=True, kw_only=True):
    """Base of all commands. A command whose answer promises less than the state says so."""

    promises: ClassVar[Promise] = Promise.STATE


class Parked(Command, frozen=True, kw_only=True):
    """Base of the commands whose answer may wait for other commands; it then comes under the ticket."""

    ticket: Ticket
