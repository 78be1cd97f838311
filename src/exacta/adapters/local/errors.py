"""Errors of the local journal, in words for the operator."""

from exacta.adapters.local.files import Files
from exacta.ports.journal import JournalDamaged


def damaged(files: Files, name: str, offset: int, reason: str) -> JournalDamaged:
    """Make the error that names file and byte."""
    return JournalDamaged(
        f"{files.directory / name}, byte {offset}: {reason}. Durable data is damaged or missing, so the journal "
        "is not opened; restore the directory from a copy, or see what `exacta log repair` can do."
    )
