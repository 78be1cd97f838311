"""`exacta consume`: records of topics, on stdout, with the habits of kcat. On any Kafka cluster.

Theory of operation. Each partition is read from its start to its end, or on and on. Records are written as their bytes
are; on a terminal, what a terminal would obey is escaped. With --group the command is a member of the group, and reads
what is assigned to it. The group's offsets are committed after what they stand for was written, so that a record may
come again and none is lost.
"""

import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from enum import StrEnum
from io import UnsupportedOperation
from itertools import islice
from typing import IO, TYPE_CHECKING, Annotated, NoReturn

import typer

from exacta.cli.cluster import EXIT_NO, EXIT_USAGE, CommandConfig, Servers, client_of, fail, no_topic
from exacta.cli.interrupts import termination_interrupts
from exacta.cli.lines import OnATerminal
from exacta.cli.positions import BEGINNING, END, NoPlace, PositionKind, Range, offsets_at, range_of
from exacta.cli.record_formats import WrongFormat, as_json, format_of, unescaped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from exacta.cli.assignments import Assignment
    from exacta.cli.record_formats import Part
    from exacta.client.routing import Client
    from exacta.client.tail import ReceivedRecord
    from exacta.client.transactions import TopicPartition

_COMMIT_EVERY_S = 5.0
_NO_END = 1 << 63
"""Offsets are less than this."""


class Isolation(StrEnum):
    """Name which records a reader gets, in the words of Kafka's `isolation.level`."""

    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"


_Offsets = Annotated[
    list[str] | None,
    typer.Option(
        "--offset",
        "-o",
        metavar="WHERE",
        help="Where to begin: beginning, end, an offset, -N for the last N offsets of each partition, or s@TIME. "
        "e@TIME, given beside it, says where to end. A time is in ms since 1970 or like 2026-01-31T12:00:00Z.",
        show_default=False,
    ),
]
_Topics = Annotated[list[str] | None, typer.Argument(metavar="TOPIC", help="The topics to read.", show_default=False)]
_MoreTopics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", "-t", metavar="TOPIC", help="A topic to read, as kcat and Kafka's tools name it. It may be repeated."
    ),
]
_AsKcat = Annotated[bool, typer.Option("-C", help="Consume, as kcat is told: it changes nothing.")]
_FromBeginning = Annotated[
    bool, typer.Option("--from-beginning", help="As -o beginning, which is where it begins anyhow.")
]
_Partitions = Annotated[
    list[int] | None,
    typer.Option("--partition", "-p", min=0, metavar="N", help="Only this partition; may be repeated."),
]
_Count = Annotated[
    int | None,
    typer.Option(
        "--count", "--max-messages", "-c", min=1, metavar="N", help="Exit after this many records.", show_default=False
    ),
]
_Exit = Annotated[
    bool, typer.Option("--exit", "-e", help="Exit at the end, where it is when the command begins, and do not wait.")
]
_Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="Write each record so: %t topic, %p partition, %o offset, %T timestamp, %k key, %K its length, %s value, "
        r"%S its length, %h headers; \n, \t and so on.",
        show_default=False,
    ),
]
_Json = Annotated[bool, typer.Option("--json", "-J", help="Write each record as one line of JSON.")]
_KeyDelimiter = Annotated[
    str | None,
    typer.Option("--key-delimiter", "-K", metavar="TEXT", help="Write the key and this before each value."),
]
_Delimiter = Annotated[str, typer.Option("--delimiter", "-D", metavar="TEXT", help="Write this after each record.")]
_Null = Annotated[bool, typer.Option("--null", "-Z", help="Write NULL for a key or a value that is null.")]
_Group = Annotated[
    str | None,
    typer.Option(
        metavar="GROUP",
        help="Be a member of this group: read the partitions that are assigned, begin where the group stands (-o: "
        "where it does not), and commit what was written. With -p it reads these partitions and is no member; the "
        "group may have none then.",
        show_default=False,
    ),
]


def consume(
    topics: _Topics = None,
    more_topics: _MoreTopics = None,
    as_kcat: _AsKcat = False,
    offsets: _Offsets = None,
    from_beginning: _FromBeginning = False,
    partitions: _Partitions = None,
    count: _Count = None,
    exit_at_end: _Exit = False,
    format_text: _Format = None,
    json: _Json = False,
    key_delimiter: _KeyDelimiter = None,
    delimiter: _Delimiter = r"\n",
    null: _Null = False,
    isolation: Annotated[
        Isolation, typer.Option(help="Whether records of open and aborted transactions are read, too.")
    ] = Isolation.COMMITTED,
    group: _Group = None,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Read records and write them to stdout, one a line.

    It goes on until it is interrupted, unless -e, -c or -o e@TIME is given.

    Exit code 0 also after an interrupt (Ctrl-C or SIGTERM), 1 if a topic or an offset is not there or the cluster
    refuses.
    """
    topics = [*(topics or []), *(more_topics or [])]
    if not topics:
        fail("name a topic: exacta consume TOPIC", EXIT_USAGE)
    if group == "":
        fail("--group: the name of a group is not empty", EXIT_USAGE)
    if sys.stdout is None:
        fail("stdout is closed: there is nowhere to write", EXIT_USAGE)
    form = _form(format_text, json, key_delimiter, delimiter, null)
    try:
        wanted = range_of([*(["beginning"] if from_beginning else []), *(offsets or [])])
    except NoPlace as error:
        fail(f"--offset: {error}", EXIT_USAGE)
    if exit_at_end:
        if wanted.end is not None:
            fail("give one of --exit and -o e@TIME", EXIT_USAGE)
        wanted = wanted._replace(end=END)
    with termination_interrupts(), client_of(bootstrap_servers, command_config, "exacta-consume") as client:
        reader = _AssignedReader(client, _assignment(client, topics, partitions or [], group), wanted, isolation)
        with _until_nobody_reads() as out, closing(reader):
            with suppress(KeyboardInterrupt):
                for record in islice(reader.records(out), None if count is None else min(count, sys.maxsize)):
                    out.write(form(record))
                    reader.written(record)
            out.flush()
            reader.commit()


def _form(format_text: str | None, json: bool, key_delimiter: str | None, delimiter: str, null: bool) -> "Part":
    """Return what writes a record; end the command where the options contradict each other."""
    if sum((format_text is not None, json, key_delimiter is not None)) > 1:
        fail("give one of --format, --json and --key-delimiter", EXIT_USAGE)
    if json:
        return as_json
    try:
        if format_text is not None:
            return format_of(format_text, show_null=null)
        key, value = format_of("%k", show_null=null), format_of("%s", show_null=null)
        behind = unescaped(delimiter)
        if key_delimiter is None:
            return lambda record: value(record) + behind
        between = unescaped(key_delimiter)
        return lambda record: key(record) + between + value(record) + behind
    except WrongFormat as error:
        fail(str(error), EXIT_USAGE)


def _assignment(client: "Client", topics: list[str], wanted: list[int], group: str | None) -> "Assignment":
    """Return the partitions to read: of a group's member unless partitions are named."""
    from exacta.cli.assignments import Named, OfMember

    partitions = _chosen(client, topics, wanted)
    if group is None or wanted:
        return Named(client, frozenset(partitions), group)
    return OfMember(client, list(dict.fromkeys(topics)), group)


def _chosen(client: "Client", topics: list[str], wanted: list[int]) -> "list[TopicPartition]":
    """Return the partitions to read; end the command where a topic or a partition is not there."""
    from exacta.client.routing import UnknownTopic
    from exacta.client.transactions import TopicPartition

    try:
        counts = client.partitions(dict.fromkeys(topics))
    except UnknownTopic as error:
        no_topic(client, error.topic)
    for topic, count in counts.items():
        for each in wanted:
            if each >= count:
                fail(f"topic {topic} has no partition {each}: it has {count}", EXIT_NO)
    return [TopicPartition(topic, each) for topic, count in counts.items() for each in wanted or range(count)]


class _AssignedReader:
    """Reads the partitions that are assigned up to their ends, and keeps how far what was written goes."""

    def __init__(self, client: "Client", assignment: "Assignment", wanted: Range, isolation: Isolation) -> None:
        from exacta.client.tail import Tail
        from exacta.client.topics import READ_COMMITTED, READ_UNCOMMITTED

        self._level = READ_COMMITTED if isolation is Isolation.COMMITTED else READ_UNCOMMITTED
        self._client = client
        self._assignment = assignment
        self._wanted = wanted
        self._partitions: frozenset[TopicPartition] = frozenset()
        self._ends: dict[TopicPartition, int] = {}
        self._tail: Tail = Tail(client, {}, isolation_level=self._level)
        self._written: dict[TopicPartition, int] = {}
        self._committed_at_s = time.monotonic()

    def close(self) -> None:
        """Give the partitions and the connections back."""
        self._assignment.close()
        self._tail.close()

    def _require_within(self, starts: "Mapping[TopicPartition, int]", ends: "Mapping[TopicPartition, int]") -> None:
        """End the command where reading begins behind the end of the log, which nobody would read to notice."""
        beyond = [each for each in starts if starts[each] > ends[each]]
        for each, end in offsets_at(self._client, beyond, END, 0).items() if beyond else ():
            if starts[each] > end:
                self._fail_at(each, starts[each])

    def records(self, out: "IO[bytes] | OnATerminal") -> "Iterator[ReceivedRecord]":
        """Yield the records, until all partitions are at their ends; let `out` be seen, and commit, between two turns.

        Ends the command where there is no such offset. Raises BrokenPipeError once nobody reads any more.
        """
        from exacta.client.fetcher import OffsetOutOfRange

        try:
            while self._is_to_go_on():
                if not self._tail.positions:
                    time.sleep(self._assignment.pause_s)
                for record in self._tail.turn():
                    if record.offset < self._ends.get(record.partition, _NO_END):
                        yield record
                out.flush()
                if _nobody_reads():
                    raise BrokenPipeError
                if time.monotonic() - self._committed_at_s > _COMMIT_EVERY_S:
                    self.commit()
        except OffsetOutOfRange as error:
            self._fail_at(error.partition, error.offset)

    def _fail_at(self, at: "TopicPartition", offset: int) -> NoReturn:
        first, last = (offsets_at(self._client, [at], place, 0)[at] for place in (BEGINNING, END))
        fail(f"{at} has no offset {offset}: it has {first} up to {last}", EXIT_NO)

    def written(self, record: "ReceivedRecord") -> None:
        """Take note that a record was written."""
        self._written[record.partition] = record.offset + 1

    def commit(self) -> None:
        """Commit what was written since the last commit."""
        self._committed_at_s = time.monotonic()
        if self._written:
            self._assignment.commit(self._written)
            self._written.clear()

    def _is_to_go_on(self) -> bool:
        """Take over what is assigned now, and leave what is at its end; return whether there is more to come."""
        assigned = self._assignment.partitions()
        if assigned != self._partitions:
            self._take_over(assigned)
        positions = self._tail.positions
        for partition in [each for each in positions if positions[each] >= self._ends.get(each, _NO_END)]:
            del positions[partition]
        return bool(positions) or self._wanted.end is None or not (assigned or self._assignment.is_settled)

    def _take_over(self, assigned: "frozenset[TopicPartition]") -> None:
        if self._partitions - assigned:
            self.commit()
            for partition in self._partitions - assigned:
                self._tail.positions.pop(partition, None)
        # In their order: what is told of the first one that is refused must not depend on a set's.
        if added := sorted(assigned - self._partitions):
            first = offsets_at(self._client, added, self._wanted.start, self._level)
            committed = self._assignment.committed()
            starts = {each: committed.get(each, start) for each, start in first.items()}
            if self._wanted.end is not None:
                ends = offsets_at(self._client, added, self._wanted.end, self._level)
                if self._wanted.start.kind is PositionKind.OFFSET and self._wanted.start.number > 0:
                    self._require_within(starts, ends)
                self._ends |= ends
            self._tail.positions |= starts
        self._partitions = assigned
        self._assignment.read_by_now(assigned)


@contextmanager
def _until_nobody_reads() -> "Iterator[IO[bytes] | OnATerminal]":
    """Yield stdout for bytes; that its reader has enough, as `head` has, is the end and no error."""
    out = sys.stdout.buffer
    try:
        yield OnATerminal(out) if sys.stdout.isatty() else out
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left of it is written there


def _nobody_reads() -> bool:
    """Return whether stdout is a pipe whose reader has gone, which a write would tell only when a record comes."""
    try:
        descriptor, polled = sys.stdout.fileno(), select.poll()
    except (UnsupportedOperation, AttributeError):  # no file, as in a test; or Windows, which has no poll
        return False
    polled.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in polled.poll(0))
