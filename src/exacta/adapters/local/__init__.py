"""The journal in local files: what `exacta serve` uses unless told otherwise."""

from exacta.adapters.local.directory_lock import DirectoryInUse
from exacta.adapters.local.format_file import UnsupportedFormat
from exacta.adapters.local.journal import LocalJournal
from exacta.adapters.local.layout import is_journal

__all__ = ["DirectoryInUse", "LocalJournal", "UnsupportedFormat", "is_journal"]
