"""The move of a stopped log between a data directory and a cluster: `exacta log copy`.

Owns the order of the steps, so that never two logs start that are one. The new place is fenced from the first step on,
and the old one before the new one is open. Two last steps are between them, each of them durable:

    into a cluster: (1) the directory is fenced by a file, (2) the founding record opens the cluster;
    into a directory: (1) the founding record closes the cluster, (2) the file that fences the directory goes.

A crash before (1) leaves the old place as it was. After a crash between them neither starts, and the same command again
does (2). Each step at the ledger is made in the epoch of this copy: where a broker has led meanwhile, it is refused.
"""

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from exacta.adapters.local.directory_lock import LOCK_NAME
from exacta.adapters.local.files import PosixFiles
from exacta.adapters.shared.copying import Download, NotClean, OpenLog, open_log
from exacta.config.configuration import Configuration
from exacta.engine.schema import SCHEMA
from exacta.ports.journal import JournalError
from exacta.ports.shared import CatalogChange, Head, Ledger, ObjectStore, StoreFailed
from exacta.server import identity
from exacta.server.cluster import founding
from exacta.server.cluster.founding import Founded
from exacta.server.cluster.stopped import ask, claim, require_silence, settle
from exacta.server.errors import ServerError
from exacta.server.identity import JOURNAL_DIRECTORY, META_FILE, Elsewhere
from exacta.server.logins import SECRET_FILE, login_secret
from exacta.server.shared_stores import open_postgres

_PART_BYTES = 16 << 20


class Shared(NamedTuple):
    """The place of a cluster's log."""

    ledger: Ledger
    objects: ObjectStore
    name: str
    """The name that people know it by; without secrets."""
    place: str = ""
    """The option that names the place of the objects."""


class Copied(NamedTuple):
    """A copy that has ended."""

    end: int
    """The position at which the log ends."""
    cluster_id: str


async def copy_log(data: Path, configuration: Configuration, *, to_cluster: bool) -> Copied:
    """Move a log between a directory and the cluster that options name. Raises ServerError."""
    with _trouble():
        ledger, objects = await open_postgres(configuration)
    try:
        name = f"{configuration.postgres} (schema {configuration.postgres_schema})"
        shared = Shared(ledger, objects, name, configuration.objects)
        return await (copy_to_cluster(data, shared) if to_cluster else copy_to_directory(shared, data))
    finally:
        ledger.close()
        objects.close()


async def copy_to_cluster(data: Path, shared: Shared) -> Copied:
    """Move the log of a directory into a cluster that has none. Raises ServerError."""
    if not (data / JOURNAL_DIRECTORY).is_dir():
        raise ServerError(f"there is no log in {data}")
    files = PosixFiles(data / JOURNAL_DIRECTORY)
    with _trouble():
        files.lock()
    try:
        with _trouble():
            return await _to_cluster(data, files, shared)
    finally:
        files.unlock()


async def _to_cluster(data: Path, files: PosixFiles, shared: Shared) -> Copied:
    cluster_id = identity.cluster_id(data / META_FILE)
    note = identity.moved(data)
    if note is not None and not note.is_gone:
        identity.require_log(data)
    wanted = Founded(
        cluster_id=cluster_id,
        secret=founding.draw_secret(),
        logins=login_secret(data / SECRET_FILE),
        copied_from=str(data.absolute()),
        objects=founding.place_of(shared.place),
        copy=secrets.token_hex(8) if note is None else note.copy,
    )
    if note is not None and (await ask(shared.ledger.read_head)).epoch == 0:
        identity.require_log(data)  # its log is in another cluster
    founded = founding.read(await ask(shared.ledger.found, wanted.record()))
    if note is not None and note.copy != founded.copy:
        identity.require_log(data)
    if founded.cluster_id != cluster_id or founded.moved_to is not None:
        raise ServerError(f"{shared.name} holds a cluster already: a log is copied to a new place only")
    if note is None:
        if founded.copied_from is None:
            raise ServerError(f"{shared.name} holds a cluster already: a log is copied to a new place only")
        epoch = await claim(shared.ledger)
        with open_log(files, SCHEMA) as log:
            await _upload(log, shared, epoch)
        identity.fence(data, Elsewhere(place=shared.name, copy=founded.copy, is_gone=True))
    elif founded.copied_from is not None:
        epoch = await claim(shared.ledger)
    if founded.copied_from is not None:
        opened = replace(founded, copied_from=None)
        await settle(shared.ledger.found_again, epoch, opened.record(), False)
        shared.ledger.resign(epoch)
    return Copied((await ask(shared.ledger.read_head)).tail_from, cluster_id)


async def _upload(log: OpenLog, shared: Shared, epoch: int) -> None:
    """Let the cluster have the log, and nothing that an earlier copy has left."""
    uploads = log.uploads(shared.objects)
    await ask(shared.ledger.intend, [each.key for each in uploads])
    entries = [await asyncio.to_thread(each.put) for each in uploads]
    before = await ask(shared.ledger.read_catalog)
    change = CatalogChange(entries, [each.key for each in before.entries], log.end)
    await settle(shared.ledger.change_catalog, epoch, change)


async def copy_to_directory(shared: Shared, data: Path) -> Copied:
    """Move the log of a stopped cluster into a new directory. Raises ServerError."""
    with _trouble():
        note = identity.moved(data)
        if note is None and not _is_new(data):
            raise ServerError(f"{data} is not empty: a log is copied to a new place only")
        if note is not None and note.is_gone:
            identity.require_log(data)
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        (data / JOURNAL_DIRECTORY).mkdir(mode=0o700, exist_ok=True)
    files = PosixFiles(data / JOURNAL_DIRECTORY)
    with _trouble():
        files.lock()
    try:
        with _trouble():
            return await _to_directory(shared, data, files)
    finally:
        files.unlock()


def _is_new(data: Path) -> bool:
    """Return whether a directory has nothing, or what a copy leaves that ended before it began."""
    journal = data / JOURNAL_DIRECTORY
    found = {each.name for each in data.iterdir()} if data.exists() else set()
    inner = {each.name for each in journal.iterdir()} if journal.is_dir() else set()
    return found <= {JOURNAL_DIRECTORY} and inner <= {LOCK_NAME}


async def _to_directory(shared: Shared, data: Path, files: PosixFiles) -> Copied:
    ledger, note = shared.ledger, identity.moved(data)
    head: Head = await ask(ledger.read_head)
    if head.epoch == 0:
        raise ServerError(f"there is no log in {shared.name}")
    founded = founding.read(await ask(ledger.found, founding.draw(shared.place)))
    founding.require_objects(founded, shared.place)
    if note is not None and founded.moved_to is not None and note.copy == founded.copy:
        identity.unfence(data)
        return Copied(head.tail_from, founded.cluster_id)
    founded.require_log()
    await require_silence(ledger)
    epoch = await claim(ledger)
    name = secrets.token_hex(8)
    identity.fence(data, Elsewhere(place=shared.name, copy=name, is_gone=False))
    end = await _download(shared, files)
    (data / META_FILE).unlink(missing_ok=True)
    identity.cluster_id(data / META_FILE, founded.cluster_id)
    identity.keep(data / SECRET_FILE, founded.login_secret)
    identity.sync_directory(data)
    gone = replace(founded, moved_to=str(data.absolute()), copy=name)
    await settle(ledger.found_again, epoch, gone.record(), True)
    identity.unfence(data)
    return Copied(end, founded.cluster_id)


async def _download(shared: Shared, files: PosixFiles) -> int:
    ledger = shared.ledger
    download = Download(files, await ask(ledger.read_catalog), SCHEMA)
    await asyncio.to_thread(download.fetch, shared.objects)
    while groups := await ask(ledger.read_tail, download.end, _PART_BYTES):
        for group in groups:
            await asyncio.to_thread(download.add, group)
    await asyncio.to_thread(download.finish)
    return download.end


@contextmanager
def _trouble() -> Iterator[None]:
    """Let a ServerError of one line stand for what goes wrong with files, journal and objects."""
    try:
        yield
    except NotClean as error:
        raise ServerError(
            "the last writes of this log may be lost: start a broker on it, which tells the clients, and stop it"
        ) from error
    except (JournalError, StoreFailed, OSError) as error:
        raise ServerError(f"the log cannot be copied: {error}") from error
