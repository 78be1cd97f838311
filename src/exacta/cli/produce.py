"""`exacta produce`: records from stdin into a topic, with the habits of kcat. On any Kafka cluster.

Theory of operation. A thread reads stdin, because a pipe need not hold whole lines and a person types slowly: when
nothing has come for a moment, what has come is sent. Records are written by an idempotent producer, each once and in
their order. With a transactional id they are one transaction, or one for each given number of records, and an error or
an interrupt aborts the open one.
"""

import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from enum import StrEnum
from io import UnsupportedOperation
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from exacta.cli.cluster import EXIT_NO, EXIT_USAGE, CommandConfig, Servers, client_of, fail, not_found, note
from exacta.cli.interrupts import termination_interrupts
from exacta.cli.lines import counted
from exacta.cli.progress import counting
from exacta.cli.record_formats import WrongFormat, unescaped
from exacta.cli.record_lines import Line, NoRecord, Reading

if TYPE_CHECKING:
    from exacta.client.errors import KafkaError
    from exacta.client.routing import Client
    from exacta.client.topic_writer import TopicWriter

_CHUNK_BYTES = 64 * 1024
_MOST_CHUNKS = 64
_LINGER_S = 0.05
"""If nothing comes for this time, what has come is sent."""
_CREATION_MS = 5_000
"""A topic that is not there after this time is not created."""
_LONGEST_S = 0.5
"""The longest time after which what has come is sent, if lines come on and on."""


class Codec(StrEnum):
    """Name a codec, in the words of Kafka's `compression.type`."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


_Key = Annotated[
    str | None,
    typer.Option("--key", "-k", metavar="KEY", help="The key of all records.", show_default=False),
]
_KeyDelimiter = Annotated[
    str | None,
    typer.Option(
        "--key-delimiter",
        "-K",
        metavar="TEXT",
        help="What of a line is before this is the key. A line without it has no key.",
        show_default=False,
    ),
]
_Delimiter = Annotated[str, typer.Option("--delimiter", "-D", metavar="TEXT", help="This ends a record.")]
_Headers = Annotated[
    list[str] | None,
    typer.Option("--header", "-H", metavar="NAME=VALUE", help="A header of all records; may be repeated."),
]
_Json = Annotated[
    bool,
    typer.Option(
        "--json",
        "-J",
        help="Each line is a JSON object as `exacta consume -J` writes it: payload, and if they are there key, headers "
        "and ts. A payload that is no string is sent as JSON.",
    ),
]
_Null = Annotated[bool, typer.Option("--null", "-Z", help="Send null for a key or a value that is empty.")]
_Partition = Annotated[
    int | None,
    typer.Option(
        "--partition",
        "-p",
        min=0,
        metavar="N",
        help="Write into this partition. Unless it is given, the key decides as in the Java client, and records "
        "without a key take turns, batch by batch.",
        show_default=False,
    ),
]
_TransactionalId = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        help="Write in a transaction, which is committed at the end of the input and aborted by an error or an "
        "interrupt. The producer that had this id is fenced.",
        show_default=False,
    ),
]
_CommitEvery = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Commit after every N records, and begin another transaction.", show_default=False
    ),
]
_Timeout = Annotated[
    int, typer.Option(min=1, metavar="MS", help="A transaction that is open for this long is aborted.")
]


_Topic = Annotated[
    str | None,
    typer.Option(
        "--topic", "-t", metavar="TOPIC", help="The topic, as kcat and Kafka's tools name it.", show_default=False
    ),
]
_AsKcat = Annotated[bool, typer.Option("-P", help="Produce, as kcat is told: it changes nothing.")]


class _CannotBeRead(Exception):
    """Stdin gives an error instead of bytes. The message is the system's reason."""


def produce(
    topic: Annotated[
        str | None, typer.Argument(metavar="TOPIC", help="The topic to write into.", show_default=False)
    ] = None,
    named: _Topic = None,
    as_kcat: _AsKcat = False,
    key: _Key = None,
    key_delimiter: _KeyDelimiter = None,
    delimiter: _Delimiter = r"\n",
    headers: _Headers = None,
    json: _Json = False,
    null: _Null = False,
    partition: _Partition = None,
    compression: Annotated[Codec, typer.Option("--compression", "-z", help="Compress the batches.")] = Codec.NONE,
    transactional_id: _TransactionalId = None,
    commit_every: _CommitEvery = None,
    transaction_timeout_ms: _Timeout = 60_000,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not say how much was written.")] = False,
    bootstrap_servers: Servers = None,
    command_config: CommandConfig = None,
) -> None:
    """Write each line of stdin as a record.

    A topic that is not there is created, if the cluster creates topics on demand.

    Exit code 1 if a line is no record, stdin cannot be read or the cluster refuses; what was read before is then
    written, but for what a transaction held, which is aborted.
    """
    from exacta.client.errors import KafkaError
    from exacta.client.topic_writer import TopicWriter

    if topic is not None and named is not None:
        fail("name one topic: exacta produce TOPIC", EXIT_USAGE)
    topic = named if topic is None else topic
    if topic is None:
        fail("name a topic: exacta produce TOPIC", EXIT_USAGE)
    _require_sense(topic, transactional_id, commit_every)
    reading = _reading(key, key_delimiter, delimiter, headers or [], json, null)
    with termination_interrupts(), client_of(bootstrap_servers, command_config, "exacta-produce") as client:
        _check_partition(client, topic, partition)
        writer = TopicWriter(
            client,
            topic,
            partition=partition,
            compression=compression,
            transactional_id=transactional_id or "",
            transaction_timeout_ms=transaction_timeout_ms,
        )
        try:
            _write(writer, reading, commit_every)
            writer.close()
        except KeyboardInterrupt:
            _fail_after_giving_up(writer, "interrupted", ": the transaction is aborted" if transactional_id else "")
        except NoRecord as error:
            _fail_after_giving_up(writer, str(error), "")
        except _CannotBeRead as error:
            _fail_after_giving_up(writer, f"stdin cannot be read: {error}", "")
        except KafkaError as error:
            writer.give_up(send=False)
            _fail_if_fenced(error, transactional_id)
            raise
        except BaseException:
            writer.give_up(send=False)
            raise
    if not quiet:
        committed = f", committed in {counted(writer.transactions, 'transaction')}" if transactional_id else ""
        note(f"{counted(writer.written, 'record')} written to {topic}{committed}")


def _require_sense(topic: str, transactional_id: str | None, commit_every: int | None) -> None:
    """End the command where the call makes no sense."""
    if commit_every is not None and transactional_id is None:
        fail("--commit-every needs --transactional-id", EXIT_USAGE)
    if transactional_id == "":
        fail("--transactional-id: the id is not empty", EXIT_USAGE)
    if topic == "":
        fail("the name of a topic is not empty", EXIT_USAGE)
    if sys.stdin is None:
        fail("stdin is closed: there is nothing to read", EXIT_USAGE)


def _fail_if_fenced(error: "KafkaError", transactional_id: str | None) -> None:
    """End the command with a sentence where another producer has the transactional id, or the time was over."""
    if transactional_id and error.fenced:
        fail(f"{error}: fenced, as `exacta transactions explain {transactional_id}` tells", EXIT_NO)


def _fail_after_giving_up(writer: "TopicWriter", why: str, done: str) -> NoReturn:
    """Write what was read, or abort the transaction that it is in, and end the command."""
    fail(why + (done if writer.give_up(send=True) else ": what was read last could not be sent"), EXIT_NO)


def _reading(
    key: str | None, key_delimiter: str | None, delimiter: str, headers: list[str], json: bool, null: bool
) -> Reading:
    """Return how lines become records; end the command where the options contradict each other."""
    if sum((json, key_delimiter is not None, key is not None)) > 1:
        fail("give one of --json, --key-delimiter and --key", EXIT_USAGE)
    try:
        reading = Reading(
            delimiter=unescaped(delimiter),
            key=None if key is None else key.encode(errors="surrogateescape"),
            key_delimiter=None if key_delimiter is None else unescaped(key_delimiter),
            headers=tuple(map(_header, headers)),
            json=json,
            empty_is_null=null,
        )
    except WrongFormat as error:
        fail(str(error), EXIT_USAGE)
    if not reading.delimiter or reading.key_delimiter == b"":
        fail("a delimiter is not empty", EXIT_USAGE)
    return reading


def _header(text: str) -> tuple[str, bytes | None]:
    name, separator, value = text.partition("=")
    return name, value.encode(errors="surrogateescape") if separator else None


def _check_partition(client: "Client", topic: str, partition: int | None) -> None:
    """Create the topic if need be; end the command where it has no such partition."""
    count = _partitions(client, topic)
    if partition is not None and partition >= count:
        fail(f"topic {topic} has no partition {partition}: it has {count}", EXIT_NO)


def _partitions(client: "Client", topic: str) -> int:
    """Return how many partitions the topic has; end the command where the cluster does not create it."""
    from exacta.client.errors import DeadlineExceeded, KafkaError
    from exacta.protocol.kafka.errors import ErrorCode

    try:
        return client.partitions([topic], create=True, deadline=client.deadline(_CREATION_MS))[topic]
    except DeadlineExceeded as error:
        last = error.__cause__
        if isinstance(last, KafkaError) and last.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            not_found("the cluster creates no topics on demand, and has no topic", topic, client.topic_names())
    return client.partitions([topic], create=True)[topic]  # nobody could be reached so far


def _write(writer: "TopicWriter", reading: Reading, commit_every: int | None) -> None:
    """Write what stdin holds, until it ends."""
    since_commit = 0
    with nullcontext(_nobody_asks) if sys.stdin.isatty() else counting("records") as tell:
        for line in _lines(reading.delimiter):
            if line is None:
                writer.flush()
                continue
            writer.add(reading.record(line))
            tell(writer.written)
            since_commit += 1
            if since_commit == commit_every:
                writer.commit()
                since_commit = 0
        writer.commit()


def _nobody_asks(written: int) -> None:
    """Show nothing to a person who types the records."""


def _lines(delimiter: bytes) -> Iterator[Line | None]:
    """Yield the lines of stdin without their delimiters; None when it is time to send what has come."""
    chunks: queue.Queue[bytes | OSError] = queue.Queue(_MOST_CHUNKS)
    threading.Thread(target=_read, args=(chunks,), daemon=True).start()
    left, number, idle, sent_at_s = b"", 0, True, 0.0
    while True:
        try:
            chunk = chunks.get(timeout=None if idle else _LINGER_S)
        except queue.Empty:
            idle = True
            yield None
            continue
        if isinstance(chunk, OSError):
            raise _CannotBeRead(chunk.strerror) from chunk
        if idle:
            idle, sent_at_s = False, time.monotonic()
        *whole, left = (left + chunk).split(delimiter) if chunk else (left, b"")
        for text in whole:
            if chunk or text:
                number += 1
                yield Line(number, text)
        if not chunk:
            return
        if time.monotonic() - sent_at_s > _LONGEST_S:
            yield None
            sent_at_s = time.monotonic()


def _read(chunks: "queue.Queue[bytes | OSError]") -> None:
    """Put stdin into the queue, and behind it an empty chunk, or why it cannot be read on."""
    source = sys.stdin.buffer
    try:
        descriptor = source.fileno()
    except UnsupportedOperation:
        chunks.put(source.read())
        chunks.put(b"")
        return
    while True:
        # Not by `source`: at the exit of the process this thread would still hold its lock.
        try:
            chunk = os.read(descriptor, _CHUNK_BYTES)
        except OSError as error:
            chunks.put(error)
            return
        chunks.put(chunk)
        if not chunk:
            return
