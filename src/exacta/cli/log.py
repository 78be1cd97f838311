"""`exacta log …`: the files of a server that does not run.

The work is in `exacta.adapters.local.damage.inspection`, `exacta.repair` and `exacta.server.cluster.moving`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exacta.cli.cluster import EXIT_NO, EXIT_USAGE, fail
from exacta.cli.data_directory import DEFAULT_DATA
from exacta.cli.lines import say
from exacta.cli.progress import measuring, working

if TYPE_CHECKING:
    from exacta.adapters.local.damage.inspection import Finding, SoundGroup
    from exacta.adapters.local.files import Files
    from exacta.repair import Examination, Way

log = typer.Typer(help="Look at the files of a server that does not run, and repair them.", no_args_is_help=True)

DataDirectory = Annotated[
    Path, typer.Option("--data", metavar="DIR", help="The data directory, as for `exacta serve`.")
]


@log.callback()
def root() -> None:
    """Look at the files of a server that does not run, and repair them."""


@log.command()
def verify(data: DataDirectory = DEFAULT_DATA) -> None:
    """Check every byte, and say exactly what is not as it was written. The command changes nothing.

    Exit code 0 if nothing that was durable is damaged, 1 if something is, or if it cannot be read, 2 if called wrongly.
    """
    from exacta.adapters.local.damage.inspection import SoundGroup, Verdict
    from exacta.server.identity import JOURNAL_DIRECTORY

    groups = entries = 0
    end, damaged = 0, False
    with _inspected(data) as found:
        for each in _measured(found, data / JOURNAL_DIRECTORY):
            if isinstance(each, SoundGroup):
                groups += 1
                entries += sum(1 for entry in each.group.entries if entry.event)
                end = max(end, each.group.end)  # compacted segments, which come last, have positions of their own
            else:
                damaged = damaged or each.verdict is Verdict.DAMAGED
                say(_line(each))
    say(f"{groups} groups with {entries} events can be read; the last one ends at position {end}")
    if damaged:
        fail(
            "durable data is damaged: the server will not start on it; restore the directory from a copy, or see what "
            "`exacta log repair` can do",
            EXIT_NO,
        )


@log.command()
def dump(data: DataDirectory = DEFAULT_DATA) -> None:
    """Print all events that can be read, one JSON object a line, in order. Nothing is changed.

    A line has the event's position, its file and byte, the event, and the batches that came with it (partition id,
    offsets, largest timestamp, bytes, records). Only batches are left of what was cleaned, and no event. A part that
    cannot be read is a line, too, and `exacta log verify` judges it. The keys by which users log in are not shown.

    Exit code 0, 1 if the files cannot be read, 2 if called wrongly.
    """
    from exacta.adapters.local.damage.inspection import SoundGroup

    with _inspected(data) as found:
        for each in found:
            for line in _events(each) if isinstance(each, SoundGroup) else (_unread(each),):
                typer.echo(_json(line))


@log.command()
def repair(
    data: DataDirectory = DEFAULT_DATA,
    mend: Annotated[bool, typer.Option("--mend", help="Put right what costs nothing.")] = False,
    drop: Annotated[
        bool,
        typer.Option("--drop-damaged-batches", help="Give up the batches that are lost, and keep all else."),
    ] = False,
    truncate: Annotated[
        bool, typer.Option("--truncate-at-damage", help="Give up all from the first loss on, sound or not.")
    ] = False,
    keep_in: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where the old files are kept; else damaged-TIME in the journal's directory.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Say what is damaged, and what each remedy would cost; with an option, apply it.

    Without an option nothing is changed. No file is written to in place: those that are replaced are kept. With both
    --drop-damaged-batches and --truncate-at-damage, batches are given up as far as that helps, and from there on all is
    given up. The losses are printed, and kept beside the old files.

    Exit code 0 if the journal is sound, or is now; 1 if it is not; 2 if called wrongly.
    """
    from exacta.repair import Way, examine, finish, is_interrupted

    way = {
        (False, False): Way.MEND if mend else None,
        (True, False): Way.DROP,
        (False, True): Way.CUT,
        (True, True): Way.DROP_AND_CUT,
    }[drop, truncate]
    with _locked(data) as files:
        if way is None and is_interrupted(files):
            fail("a repair was interrupted: the same command, or any other with an option, finishes it", EXIT_NO)
        if way is not None and (kept := finish(files)) is not None:
            say(f"finished the repair that was interrupted; the old files are in {kept}")
            return
        with working("reading the journal, and weighing the remedies"):
            examined = examine(files)
        if examined.is_sound:
            say("nothing is damaged")
            return
        for finding in examined.findings:
            say(_line(finding))
        if way is None:
            _offer(examined)
            raise typer.Exit(EXIT_NO)
        _apply(examined, way, files, keep_in)


@log.command()
def copy(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="A data directory, or postgresql://USER@HOST/DATABASE.")
    ],
    target: Annotated[str, typer.Argument(metavar="TO", help="The other one of both.")],
    schema: Annotated[
        str | None, typer.Option("--postgres-schema", metavar="NAME", help="As for `exacta serve`.", show_default=False)
    ] = None,
    objects: Annotated[
        str | None, typer.Option("--objects", metavar="URL", help="As for `exacta serve`.", show_default=False)
    ] = None,
    credentials: Annotated[
        Path | None,
        typer.Option("--objects-credentials-file", metavar="FILE", help="As for `exacta serve`.", show_default=False),
    ] = None,
) -> None:
    """Move the log of stopped brokers from a data directory to a cluster, or back.

    The other place must be new. All is the same there: offsets, groups, subscriptions, sequences, epochs, users, rules
    and commit numbers. The old place keeps its bytes, says where the log has gone, and starts no more. After a crash
    the same command again ends what this one has begun; brokers start in one place only, and before that in none.

    Exit code 0, 1 if the log was not moved, 2 if called wrongly.
    """
    import asyncio

    from exacta.config.errors import ConfigurationError
    from exacta.config.options import configure
    from exacta.server.cluster.moving import copy_log
    from exacta.server.errors import ServerError

    is_url = [each.startswith(("postgresql://", "postgres://")) for each in (source, target)]
    if sum(is_url) != 1:
        fail("one of both places is a data directory, and the other one postgresql://USER@HOST/DATABASE", EXIT_USAGE)
    url, data = (target, source) if is_url[1] else (source, target)
    options = {"postgres_schema": schema, "objects": objects, "objects_credentials_file": credentials}
    given = {name: str(value) for name, value in options.items() if value is not None}
    try:
        configuration = configure({"postgres": url, **given})
    except ConfigurationError as error:
        fail(str(error), EXIT_USAGE)
    try:
        with working("copying the log"):
            copied = asyncio.run(copy_log(Path(data), configuration, to_cluster=is_url[1]))
    except ServerError as error:
        fail(str(error), EXIT_NO)
    say(f"the log of cluster {copied.cluster_id} is in {target}, and ends at position {copied.end}")
    say(f"{source} starts no more; its bytes are there until you remove them")


def _apply(examined: "Examination", way: "Way", files: "Files", keep_in: Path | None) -> None:
    from exacta.repair import apply_remedy

    remedy = next(each for each in examined.remedies if each.way is way)
    if remedy.plan is None:
        fail(f"{way.value} is no remedy here: {remedy.why_not}; nothing was changed", EXIT_NO)
    keep = _kept_in(files.directory, keep_in)
    with _keeping(keep) as kept_files:
        with working("writing the journal again"):
            report = apply_remedy(examined, remedy, files, kept_files)
        for line in report:
            say(line)
    say(f"the journal is repaired; the old files, and this report, are in {keep}")


def _offer(examined: "Examination") -> None:
    for each in examined.found.mended:
        say(f"can be put right at no price: {each.name}, byte {each.offset}: {each.what}")
    for line in examined.damage:
        say(f"cannot be put right: {line}")
    for remedy in examined.remedies:
        if remedy.plan is None:
            say(f"exacta log repair {remedy.way.value}: no remedy here: {remedy.why_not}")
            continue
        say(f"exacta log repair {remedy.way.value}: gives up {'' if remedy.losses else 'nothing'}".rstrip())
        for line in remedy.losses:
            say(f"    {line}")
    if all(remedy.plan is None for remedy in examined.remedies):
        fail("nothing here repairs it: restore the directory from a copy; `exacta log dump` prints the rest", EXIT_NO)
    fail("durable data is damaged, or must be made again; nothing was changed", EXIT_NO)


def _kept_in(directory: Path, wanted: Path | None) -> Path:
    from datetime import UTC, datetime

    keep = wanted or directory / f"damaged-{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}"
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        fail(f"{keep} is not empty; --keep-in names a directory that is, or is still to be made", EXIT_USAGE)
    return keep


@contextmanager
def _keeping(directory: Path) -> "Iterator[Files]":
    from exacta.adapters.local.files import PosixFiles

    files = PosixFiles(directory)
    files.lock()
    try:
        yield files
    finally:
        files.unlock()


def _measured(found: "Iterator[SoundGroup | Finding]", journal: Path) -> "Iterator[SoundGroup | Finding]":
    """Yield what is found, and show which part of the files has been read: they come one after the other."""
    sizes = {each.name: each.stat().st_size for each in journal.iterdir()}
    name, of_whole_files = "", 0
    with measuring("reading", sum(sizes.values())) as tell:
        for each in found:
            if each.name != name:
                of_whole_files += sizes.get(name, 0)
                name = each.name
            tell(of_whole_files + each.offset)
            yield each


@contextmanager
def _inspected(data: Path) -> "Iterator[Iterator[SoundGroup | Finding]]":
    from exacta.adapters.local.damage.inspection import inspect
    from exacta.engine.schema import SCHEMA

    with _locked(data) as files:
        yield inspect(files, SCHEMA)


@contextmanager
def _locked(data: Path) -> "Iterator[Files]":
    from exacta.adapters.local.directory_lock import DirectoryInUse
    from exacta.adapters.local.files import PosixFiles
    from exacta.ports.journal import JournalError
    from exacta.server.identity import JOURNAL_DIRECTORY

    directory = data / JOURNAL_DIRECTORY
    if not directory.is_dir():
        fail(f"there is no journal in {data}; --data names the directory that `exacta serve` was given", EXIT_NO)
    files = PosixFiles(directory)
    try:
        files.lock()
        try:
            yield files
        finally:
            files.unlock()
    except BrokenPipeError:  # the reader has read enough
        os._exit(0)
    except DirectoryInUse as error:
        fail(f"{error}: stop the server first", EXIT_NO)
    except JournalError as error:
        fail(str(error), EXIT_NO)
    except OSError as error:
        fail(f"the journal in {data} cannot be read or written: {error.strerror or error}", EXIT_NO)


def _line(found: "Finding") -> str:
    return f"{found.name}, byte {found.offset}: {found.reason} ({found.verdict.value})"


def _unread(found: "Finding") -> dict[str, Any]:
    return {"file": found.name, "byte": found.offset, "unreadable": found.reason, "verdict": found.verdict.value}


def _events(place: "SoundGroup") -> Iterator[dict[str, Any]]:
    import msgspec

    from exacta.core.event_codec import decode_event

    for entry in place.group.entries:
        line: dict[str, Any] = {"position": place.group.position, "file": place.name, "byte": place.offset}
        try:
            if not entry.event:  # a cleaned segment has only batches
                yield line | {"event": None, "batches": [row._asdict() for row in entry.rows]}
                continue
            event = decode_event(entry.event)
        except (msgspec.DecodeError, ValueError) as error:
            # Its bytes are not told: a later version may keep secrets in them.
            line |= {"unreadable": f"this version knows no such event: {error}", "size": len(entry.event)}
        else:
            line |= {"event": type(event).__name__, **msgspec.structs.asdict(event)}
            line.pop("batch", None)  # a staged one, which may be long; its size is told
        if entry.rows:
            line["batches"] = [row._asdict() for row in entry.rows]
        yield line


def _json(line: dict[str, Any]) -> str:
    import msgspec

    return msgspec.json.encode(line, enc_hook=repr).decode()
