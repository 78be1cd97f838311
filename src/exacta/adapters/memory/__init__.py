"""Adapters that keep everything in memory: verified fakes, for tests, simulation and brokers that may forget."""

from exacta.adapters.memory.journal import MemoryJournal
from exacta.adapters.memory.storage import MemoryStorage

__all__ = ["MemoryJournal", "MemoryStorage"]
