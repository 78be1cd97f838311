"""Errors of the local journal, in words for the operator."""

from exacta.adapters.local.files import Files
from exacta.ports.journal import JournalDamaged


def damaged(files: Files, name: str, offset: int, reason: str) -> JournalDamaged:
    """Make the error that names file and byte."""
    return JournalDamaged(files.tell_damage(name, offset, reason))
