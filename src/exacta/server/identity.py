"""The data directory of a server: the journal in it, the cluster's id, and whether the directory is ours at all."""

import base64
import os
import uuid
from pathlib import Path

import msgspec
from msgspec import Struct

from exacta.adapters.local import is_journal
from exacta.server.errors import ServerError

JOURNAL_DIRECTORY = "journal"
META_FILE = "meta.properties"
TOKEN_FILE = "first-user.token"
"""The file of the token that makes the first user (`first_user.py`)."""
_META_VERSION = "1"


def cluster_id(path: Path, given: str | None = None) -> str:
    """Read the cluster's id, or keep the one that is given, or a new one: clients may check that it is the same."""
    if path.exists():
        lines = (line.partition("=") for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
        meta = {key: value for key, _, value in lines}
        if meta.get("version") != _META_VERSION or not meta.get("cluster.id"):
            raise ServerError(f"{path} was not written by this version of Exacta")
        return meta["cluster.id"]
    made = given or base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    keep(path, f"version={_META_VERSION}\ncluster.id={made}\n".encode())
    return made


def keep(path: Path, content: bytes) -> None:
    """Write a file durably and whole; only its owner may read it."""
    beside = path.with_suffix(".new")
    with open(beside, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


MOVED_FILE = "moved.json"


class Elsewhere(Struct, frozen=True, kw_only=True):
    """The file that fences a data directory: its log is elsewhere, or not yet here. Fields are only added."""

    place: str
    """The place where the log has gone, or from which it is copied."""
    copy: str
    """The name of the copy."""
    is_gone: bool
    """False: the log is being copied into this directory."""


def moved(data: Path) -> Elsewhere | None:
    """Read the file; None: there is none. Raises ServerError and OSError."""
    try:
        content = (data / MOVED_FILE).read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(content, type=Elsewhere)
    except msgspec.DecodeError as error:
        raise ServerError(f"{data / MOVED_FILE} cannot be read, and it says where the log of {data} is") from error


def fence(data: Path, note: Elsewhere) -> None:
    """Let no broker start on this directory, durably."""
    keep(data / MOVED_FILE, msgspec.json.encode(note))


def unfence(data: Path) -> None:
    """Let a broker start on this directory, durably."""
    (data / MOVED_FILE).unlink(missing_ok=True)
    sync_directory(data)


def require_log(data: Path) -> None:
    """Raise ServerError if the log of this directory is elsewhere."""
    note = moved(data)
    if note is not None and note.is_gone:
        raise ServerError(f"the log of {data} has gone to {note.place}: start brokers there")
    if note is not None:
        raise ServerError(
            f"the copy of the log from {note.place} to {data} has not ended: the same `exacta log copy` again ends it"
        )


CACHE_DIRECTORY = "cache"
"""The folder of the data directory in which a broker of a cluster keeps what it has fetched."""

_NEVER_IN_THE_WAY = frozenset(
    {name for each in (META_FILE, MOVED_FILE) for name in (each, Path(each).with_suffix(".new").name)} | {"lost+found"}
)


def refuse_all_but_a_cache(data: Path) -> None:
    """Raise ServerError where a directory is to be a broker's cache, and holds a log, or what is not ours."""
    try:
        found = set(os.listdir(data)) if data.is_dir() else set()
    except OSError:
        return  # opening it says why
    if JOURNAL_DIRECTORY in found:
        raise ServerError(
            f"{data} holds the log of a broker alone, and with --postgres the log lies in PostgreSQL: name another "
            "directory with --data, for a cache"
        )
    ours = {CACHE_DIRECTORY, TOKEN_FILE, Path(TOKEN_FILE).with_suffix(".new").name, "lost+found"}
    foreign = sorted(each for each in found - ours if each[0] != ".")
    if foreign:
        raise ServerError(f"{data} holds other files ({foreign[0]}): name a new or empty directory with --data")


def refuse_foreign(data: Path) -> None:
    """Raise ServerError where the directory is somebody else's: it holds other things, and no journal.

    A first start that a crash has interrupted leaves our names only. Hidden files, and the `lost+found` of a file
    system that is mounted there, are in nobody's way. Beside a journal there may be anything, as there always might.
    """
    journal = data / JOURNAL_DIRECTORY
    try:
        if not data.is_dir() or (journal.is_dir() and is_journal(os.listdir(journal))):
            return
        foreign = sorted(each for each in os.listdir(data) if each[0] != "." and each not in _NEVER_IN_THE_WAY)
    except OSError:
        return  # opening it says why
    if foreign:
        raise ServerError(
            f"{data} holds other files ({foreign[0]}{', …' if len(foreign) > 1 else ''}) and no data of Exacta: name a "
            "new or empty directory with --data"
        )
