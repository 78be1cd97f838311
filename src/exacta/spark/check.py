"""Check, before its first batch, whether a job that writes can run as it is configured (`exacta.spark.check`).

This module owns the list of checks and their order. The rules are the sink's own (`options/`, `rows.py`). Everything
that is wrong is said at once.

Theory of operation. The check leaves nothing on the cluster, as far as possible. Topics are looked up without being
created, and the answer says what the user may do with them (KIP-430). Permissions on transactional ids and groups are
tried under names that nobody has, which begin as the job's own names do. A broker judges the permission first, and only
then says that the producer does not exist. The longest allowed transaction is read from a broker's settings. If the
user may not read these, the time-out is tried with a transactional id that nobody has. That id stays until the cluster
forgets it, and the report says so. Nothing here takes over, fences or reads what a running query has.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import fields

from exacta.client.acknowledging import Acknowledgement, can_acknowledge
from exacta.client.configs import broker_configs
from exacta.client.errors import ClientError, KafkaError
from exacta.client.routing import Anyone, Client
from exacta.client.topics import READ, WRITE, TopicAccess, look_at_topic
from exacta.client.trials import try_group, try_transactional_id
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k66_list_transactions import ListTransactionsRequest
from exacta.spark.arrow.rows import check_write_columns
from exacta.spark.error_sentences import sentence_for
from exacta.spark.options import OptionError, SinkOptions
from exacta.spark.options.foreach_batch import parse_foreach_batch
from exacta.spark.options.parsing import Parsed, as_text
from exacta.spark.sink.checkpoint import Checkpoint, CheckpointUnreadable
from exacta.spark.sink.errors import NoWorkQueue, SinkError
from exacta.spark.sink.incarnations import take_over, too_long
from exacta.spark.sink.note import SinkNotes
from exacta.spark.sink.written_topics import missing_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CALL_TIMEOUT_MS = 15_000
"""A call to the cluster is tried for so long: nobody waits for a check as a job waits for its cluster."""

_LONGEST_TRANSACTION = "transaction.max.timeout.ms"
_CREATES_TOPICS = "auto.create.topics.enable"
_PARTITIONS = "num.partitions"

_PERMISSIONS = {READ: "Read", WRITE: "Write"}

_NOT_PERMITTED = (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED)

_NAME_IT = (
    "; that is new with each checkpoint: set option 'transactional.id.prefix', and permit what begins with its value"
)

_UNSEEN = (
    "this was tried from the driver: it cannot be seen from here whether every executor reaches the brokers, and has "
    "the package and the files that options name; nor which output mode the query has (Update mode needs foreachBatch)"
)


class CheckFailed(SinkError):
    """A job cannot run as it is configured; the message is the report."""


class CheckReport(Struct, frozen=True, kw_only=True):
    """The findings of `check`: sentences, each of which says what to do."""

    problems: tuple[str, ...]  # with one of them the job cannot run
    notes: tuple[str, ...]  # worth knowing; the job runs all the same

    @property
    def ok(self) -> bool:
        """Return whether the job can run, as far as that can be told beforehand."""
        return not self.problems

    def raise_if_failed(self) -> None:
        """Raise `CheckFailed` with the report unless the job can run."""
        if not self.ok:
            raise CheckFailed(str(self))

    def __str__(self) -> str:
        if self.ok:
            verdict = "the job can run, as far as that can be told beforehand"
        else:
            verdict = f"the job cannot run as it is configured; problems: {len(self.problems)}"
        return "\n".join(
            (verdict, *(f"- problem: {each}" for each in self.problems), *(f"- note: {each}" for each in self.notes))
        )


def check(
    df: DataFrame,
    options: Mapping[str, object] | None = None,
    *,
    acknowledge: Acknowledgement | None = None,
    **named: object,
) -> CheckReport:
    """Return whether a job that writes `df` can run: options, columns, cluster, topics, permissions, time-outs.

    `options` and `named` are the options of the writer, or of `exacta.spark.write`, and `acknowledge` is the latter's
    argument. `df` is a stream or a batch, in classic Spark or in Spark Connect; only its schema is asked. Findings
    raise no error.
    """
    found = _Found()
    acknowledges = acknowledge is not None
    parsed = parse_foreach_batch(as_text({**(options or {}), **named}), acknowledges=acknowledges)
    found.problems += parsed.problems
    if (line := parsed.notice()) is not None:
        found.notes.append(line)
    _check_columns(found, df, parsed)
    sink = _sink_as_far_as_right(parsed)
    if sink is not None:
        name = _check_checkpoint(found, df, parsed, sink)
        call_timeout_ms = min(sink.delivery_timeout_ms, _CALL_TIMEOUT_MS)
        with Client(sink.cluster, call_timeout_ms=call_timeout_ms) as client:
            _check_cluster(found, client, sink, name, acknowledges=acknowledges)
    found.notes.append(_UNSEEN)
    return CheckReport(problems=tuple(found.problems), notes=tuple(found.notes))


class _Found(Struct):
    problems: list[str] = []
    notes: list[str] = []

    @contextmanager
    def noting(self, bootstrap: str = "") -> Iterator[None]:
        """Note what the block raises as a problem."""
        try:
            yield
        except OptionError as error:
            self.problems += error.problems
        except SinkError as error:
            self.problems.append(str(error))
        except ClientError as error:
            self.problems.append(sentence_for(error, bootstrap))


def _check_columns(found: _Found, df: DataFrame, parsed: Parsed) -> None:
    # Where the options name no topic at all, that has been said.
    rows_name_it = parsed.lacks("topic") and not parsed.lacks("marker_topic")
    with found.noting():
        check_write_columns(df.schema, None if rows_name_it else "")


def _sink_as_far_as_right(parsed: Parsed) -> SinkOptions | None:
    """Return the writer's options without those that are wrong; None where the cluster is not known."""
    if "bootstrap" not in parsed.values or "security" not in parsed.values:
        return None
    known = {each.name for each in fields(SinkOptions)}
    return SinkOptions(**{name: value for name, value in parsed.values.items() if name in known})


def _check_checkpoint(found: _Found, df: DataFrame, parsed: Parsed, sink: SinkOptions) -> str:
    """Look at the query's checkpoint, where there is one; return what the job's names on the cluster begin with."""
    query_id = str(uuid.uuid4())  # of a new query, as nobody knows it beforehand
    if sink.checkpoint_location is None:
        if df.isStreaming:
            found.notes.append(
                "option 'checkpointLocation' is not among the options: writeStream.format(\"exacta\") needs it as an "
                ".option(...) of the writer; exacta.spark.write, called in a function of foreachBatch, finds it by "
                "itself in classic Spark"
            )
        return sink.name or query_id
    checkpoint = Checkpoint(sink.checkpoint_location, df.sparkSession)
    try:
        query_id = checkpoint.query_id()
        # As if the cluster had records: whether it has is looked up when the query begins.
        SinkNotes.of(checkpoint, sink, sink_name=parsed.values.get("sink_name")).check(recorded=True)
    except (CheckpointUnreadable, SinkError) as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            found.problems.append(str(error))
    return sink.name or query_id


def _check_cluster(found: _Found, client: Client, sink: SinkOptions, name: str, *, acknowledges: bool) -> None:
    bootstrap = client.bootstrap
    reached = len(found.problems)
    nodes: list[int] = []
    with found.noting(bootstrap):
        nodes = client.nodes()
    if len(found.problems) > reached:
        return  # and so would everything else be
    with found.noting(bootstrap):
        if acknowledges and not can_acknowledge(client):
            raise NoWorkQueue(bootstrap)
    settings = _settings(found, client, nodes[0])
    if sink.exactly_once:
        _check_transactions(found, client, sink, name, settings)
    needed: dict[str, list[int]] = {}
    if sink.topic is not None:
        needed.setdefault(sink.topic, []).append(WRITE)
    marker = sink.marker_topic or sink.topic
    if sink.exactly_once and marker is not None:
        needed.setdefault(marker, []).append(READ)
    for topic, operations in needed.items():
        with found.noting(bootstrap):
            _check_topic(found, client, topic, operations, settings)
    if sink.topic is None:
        found.notes.append("rows name their topics in column 'topic': whether these exist is seen when they come")


def _settings(found: _Found, client: Client, node: int) -> dict[str, str]:
    """Return what a broker tells of its settings: nothing where the user may not read them."""
    try:
        return broker_configs(client, node, (_LONGEST_TRANSACTION, _CREATES_TOPICS, _PARTITIONS))
    except ClientError as error:
        why = (error.detail if isinstance(error, KafkaError) else None) or sentence_for(error, client.bootstrap)
        found.notes.append(f"the settings of the brokers could not be read ({why}); only this check uses them")
        return {}


def _check_topic(
    found: _Found, client: Client, topic: str, needed: Collection[int], settings: Mapping[str, str]
) -> None:
    try:
        access = look_at_topic(client, topic)
    except KafkaError as error:
        if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
        access = TopicAccess(0, frozenset())
    if access is None:
        creates = settings.get(_CREATES_TOPICS)
        if creates == "false":
            found.problems.append(missing_topic(topic, client.bootstrap))
        else:
            count = settings.get(_PARTITIONS, "the default number of")
            found.notes.append(
                f"topic '{topic}' does not exist on {client.bootstrap}: the first batch creates it, with {count} "
                + ("partitions" if creates == "true" else "partitions, if the cluster creates topics on demand")
            )
    elif access.operations is not None and not access.operations.issuperset(needed):
        operations = ["Describe", *(_PERMISSIONS[each] for each in needed)]
        found.problems.append(_not_permitted(client, operations, f"topic '{topic}'"))


def _not_permitted(client: Client, operations: Sequence[str], on: str) -> str:
    return (
        f"{client.cluster.security.principal} lacks a permission on {client.bootstrap}: the sink needs "
        f"{', '.join(operations[:-1])} and {operations[-1]} on {on}"
    )


def _check_transactions(
    found: _Found, client: Client, sink: SinkOptions, name: str, settings: Mapping[str, str]
) -> None:
    with found.noting(client.bootstrap):
        if not client.offers(Anyone(), ListTransactionsRequest()):
            found.problems.append(
                f"{client.bootstrap} does not list transactions (KIP-664), which the sink needs: use an Exacta, or "
                "Apache Kafka 3.0 or later"
            )
            return
    with found.noting(client.bootstrap):
        # Nobody has this name, and it is none that a query could make.
        trial = f"{name}-check-{uuid.uuid4()}"
        begins = "that begin with " + ("the query's id" if sink.name is None else f"'{sink.name}'")
        permitted = True
        for needed, on, attempt in (
            (("Describe", "Write"), f"transactional ids {begins}", try_transactional_id),
            (("Describe", "Read"), f"groups {begins}", try_group),
        ):
            try:
                attempt(client, trial)
            except KafkaError as error:
                if error.code not in _NOT_PERMITTED:
                    raise
                permitted = False
                found.problems.append(_not_permitted(client, needed, on) + (_NAME_IT if sink.name is None else ""))
        longest = settings.get(_LONGEST_TRANSACTION)
        if longest is None and permitted:
            take_over(client, trial, transaction_timeout_ms=sink.transaction_timeout_ms)
            found.notes.append(
                f"the time-out of transactions was tried by transactional id '{trial}', which the cluster keeps until "
                "it expires"
            )
        elif longest is not None and sink.transaction_timeout_ms > int(longest):
            found.problems.append(f"{too_long(sink.transaction_timeout_ms)} ({longest} ms)")
