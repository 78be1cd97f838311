"""The `format` file: which version of the journal, and which schema of its content, a directory has.

It is one line of text with a checksum, so that a directory of another version can be told from a damaged file. The
versions before 6 wrote no checksum. What the schema means is not known here (`exacta.ports.journal.Schema`).
"""

import re
from typing import NamedTuple

from crc32c import crc32c

from exacta.adapters.local.files import Files, read_file
from exacta.adapters.local.format import FORMAT_NAME, VERSION
from exacta.ports.journal import JournalError, Schema

_LINE = re.compile(rb"(exacta journal ([1-9][0-9]{0,8})(?:, ([ -~]+))?), checksum ([0-9a-f]{8})\n")
_WITHOUT_CHECKSUM = re.compile(rb"exacta journal ([1-5])\n")
MOST_BYTES = 256


class UnsupportedFormat(JournalError):
    """The data directory was written by a version of Exacta that this one cannot read."""


class Format(NamedTuple):
    """The content of the format file; a journal that was opened without a schema has none."""

    version: int
    schema: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, (f"exacta journal {self.version}", self.schema)))


def present(schema: Schema | None) -> Format:
    """Return what this version writes."""
    return Format(VERSION, "" if schema is None else schema.writes)


def pack(found: Format) -> bytes:
    """Return the content of the file."""
    line = str(found).encode("ascii")
    return b"%s, checksum %08x\n" % (line, crc32c(line))


def unpack(content: bytes) -> Format | None:
    """Return what the file says; None if these are not the bytes that any version wrote."""
    if old := _WITHOUT_CHECKSUM.fullmatch(content):
        return Format(int(old[1]))
    match = _LINE.fullmatch(content)
    if match is None or crc32c(match[1]) != int(match[4], 16):
        return None
    return Format(int(match[2]), (match[3] or b"").decode("ascii"))


def load(files: Files) -> Format | None:
    """Return what the file of a directory says; None if it is damaged. Raises OSError."""
    return unpack(read_file(files, FORMAT_NAME)[:MOST_BYTES])


def is_read(found: Format, schema: Schema | None) -> bool:
    """Return whether this version reads a directory of this format; without a schema it reads any."""
    return found.version == VERSION and (schema is None or found.schema in {schema.writes, *schema.reads})


def refusal(files: Files, found: Format, schema: Schema | None) -> str:
    """Return the line that says why a directory is not opened, and what to do."""
    names = ("",) if schema is None else (schema.writes, *schema.reads)
    read = " or ".join(f"'{Format(VERSION, name)}'" for name in names)
    return (
        f"{files.directory / FORMAT_NAME} says '{found}', and this version of Exacta reads {read}. Use the version "
        "that wrote the directory, or a later one that reads it, or begin with a new directory; nothing was changed"
    )
