"""`exacta log …`: the files of a server that does not run. The work is in `exacta.adapters.local.inspection`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exacta.cli import DEFAULT_DATA
from exacta.cli.cluster import EXIT_NO, fail

if TYPE_CHECKING:
    from exacta.adapters.local.inspection import Finding, Place

log = typer.Typer(help="Look at the files of a server that does not run.", no_args_is_help=True)

DataDirectory = Annotated[
    Path, typer.Option("--data", metavar="DIR", help="The data directory, as for `exacta serve`.")
]


@log.callback()
def root() -> None:
    """Look at the files of a server that does not run."""


@log.command()
def verify(data: DataDirectory = DEFAULT_DATA) -> None:
    """Check every byte, and say exactly what is not as it was written. Nothing is changed.

    Exit code 0 if nothing that was durable is damaged, 1 if something is, or if it cannot be read, 2 if called wrongly.
    """
    from exacta.adapters.local.inspection import Place, Verdict

    groups = entries = 0
    end, damaged = 0, False
    with _inspected(data) as found:
        for each in found:
            if isinstance(each, Place):
                groups += 1
                entries += sum(1 for entry in each.group.entries if entry.event)
                end = each.group.end
            else:
                damaged = damaged or each.verdict is Verdict.DAMAGED
                typer.echo(_line(each))
    typer.echo(f"{groups} groups with {entries} events can be read; the last one ends at position {end}")
    if damaged:
        fail("durable data is damaged: the server will not start on it; restore the directory from a copy", EXIT_NO)


@log.command()
def dump(data: DataDirectory = DEFAULT_DATA) -> None:
    """Print all events that can be read, one JSON object a line, in order. Nothing is changed.

    A line has the event's position, its file and byte, the event, and the batches that came with it (partition id,
    offsets, largest timestamp, bytes, records). Of what was cleaned only batches are left, and no event. What cannot
    be read is a line, too, and `exacta log verify` judges it.

    Exit code 0, 1 if the files cannot be read, 2 if called wrongly.
    """
    from exacta.adapters.local.inspection import Place

    with _inspected(data) as found:
        for each in found:
            for line in _events(each) if isinstance(each, Place) else (_unread(each),):
                typer.echo(_json(line))


@contextmanager
def _inspected(data: Path) -> "Iterator[Iterator[Place | Finding]]":
    from exacta.adapters.local.files import PosixFiles
    from exacta.adapters.local.inspection import inspect
    from exacta.ports.journal import JournalError
    from exacta.server import JOURNAL_DIRECTORY

    directory = data / JOURNAL_DIRECTORY
    if not directory.is_dir():
        fail(f"there is no journal in {data}; --data names the directory that `exacta serve` was given", EXIT_NO)
    files = PosixFiles(directory)
    try:
        files.lock()
        try:
            yield inspect(files)
        finally:
            files.unlock()
    except BrokenPipeError:  # whoever reads has read enough
        os._exit(0)
    except JournalError as error:
        fail(f"{error}: stop the server first", EXIT_NO)
    except OSError as error:
        fail(f"the journal in {data} cannot be read: {error.strerror or error}", EXIT_NO)


def _line(found: "Finding") -> str:
    return f"{found.name}, byte {found.offset}: {found.reason} ({found.verdict.value})"


def _unread(found: "Finding") -> dict[str, Any]:
    return {"file": found.name, "byte": found.offset, "unreadable": found.reason, "verdict": found.verdict.value}


def _events(place: "Place") -> Iterator[dict[str, Any]]:
    import msgspec

    from exacta.core.events import decode_event

    for entry in place.group.entries:
        line: dict[str, Any] = {"position": place.group.position, "file": place.name, "byte": place.offset}
        try:
            if not entry.event:  # a cleaned segment has only batches
                yield line | {"event": None, "batches": [row._asdict() for row in entry.rows]}
                continue
            event = decode_event(entry.event)
        except (msgspec.DecodeError, ValueError) as error:
            line |= {"unreadable": f"this version knows no such event: {error}", "bytes": entry.event.hex()}
        else:
            line |= {"event": type(event).__name__, **msgspec.structs.asdict(event)}
        if entry.rows:
            line["batches"] = [row._asdict() for row in entry.rows]
        yield line


def _json(line: dict[str, Any]) -> str:
    import msgspec

    return msgspec.json.encode(line, enc_hook=repr).decode()
