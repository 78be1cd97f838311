"""Adapters that keep everything in memory: verified fakes, for tests, simulation and brokers that may forget."""

from exacta.adapters.memory.database import MemoryDatabase
from exacta.adapters.memory.journal import MemoryJournal
from exacta.adapters.memory.ledger import MemoryLedger
from exacta.adapters.memory.objects import MemoryObjects, StoreFault
from exacta.adapters.memory.storage import MemoryStorage
from exacta.adapters.memory.wire import DatabaseWire

__all__ = [
    "DatabaseWire",
    "MemoryDatabase",
    "MemoryJournal",
    "MemoryLedger",
    "MemoryObjects",
    "MemoryStorage",
    "StoreFault",
]
