"""The options of a writer."""

from collections.abc import Mapping

from exacta.client.producer_settings import COMPRESSION
from exacta.spark.options.connection import CONNECTION, ConnectionOptions, judge_connection
from exacta.spark.options.kafka_clients import COMMON_REFUSED, PRODUCER_REFUSED
from exacta.spark.options.parsing import (
    Option,
    OptionError,
    Parsed,
    flag,
    one_of,
    only,
    parse,
    path_instead_of,
    positive,
    refuse_without_effect,
    text,
    whole,
)

TASK_SCOPE = "task"
"""The two answers to how much one transaction covers."""
BATCH_SCOPE = "batch"

EXACTLY_ONCE = "exactly-once"
"""The two answers to how often a row may come to be on the cluster."""
AT_LEAST_ONCE = "at-least-once"

_OF_TRANSACTIONS = (
    "transaction.scope",
    "transactional.id.prefix",
    "transaction.marker.topic",
    "kafka.transaction.timeout.ms",
    "replay.deterministic",
    "checkpoint.moved.from",
)
"""The fields that only transactions, or records of them, make use of."""

_DEPENDS_ON_IT = "exactly once depends on it"


AT_LEAST_ONCE_NEEDS_NONE = f"with option 'delivery.guarantee' {AT_LEAST_ONCE}, which writes without transactions"
"""The reason why options of transactions have no effect."""


_LONGEST_NAME = 249
"""The longest prefix is as long as the name of a topic may be. Transactional ids and groups may be longer."""


def name_on_cluster(name: str, value: str) -> str:
    """Parse what transactional ids and groups shall begin with; raises `OptionError`."""
    found = text(name, value)
    if found.endswith("-manifest"):
        raise OptionError(f"option '{name}' must not end in '-manifest': so do names that the sink itself makes")
    if len(found) > _LONGEST_NAME:
        raise OptionError(f"option '{name}' must not be longer than {_LONGEST_NAME} characters, not {len(found)}")
    return found


def _exactly_once(name: str, value: str) -> bool:
    return one_of(EXACTLY_ONCE, AT_LEAST_ONCE)(name, value) == EXACTLY_ONCE


class SinkOptions(ConnectionOptions, frozen=True, kw_only=True):
    """The options of a writer."""

    topic: str | None = None
    checkpoint_location: str | None = None
    marker_topic: str | None = None
    transaction_timeout_ms: int = 900_000
    delivery_timeout_ms: int = 120_000
    batch_size_bytes: int = 256 * 1024
    compression: str = "none"
    replay_deterministic: bool = False
    checkpoint_moved_from: str | None = None
    adopted_batch: int | None = None
    name: str | None = None  # on the cluster, where the user chose it
    transaction_scope: str = TASK_SCOPE
    exactly_once: bool = True
    query_name: str = ""


SINK = (
    *CONNECTION,
    Option(
        name="topic",
        field="topic",
        parse=text,
        default="column `topic`",
        about="the topic to write to. It wins over the column",
    ),
    Option(
        name="checkpointLocation",
        field="checkpoint_location",
        parse=text,
        default="needed",
        about=(
            "must be **an `.option(...)` of the writer**, even if the session has a default, because the query's "
            "identity and the sink's note lie there"
        ),
    ),
    Option(
        name="transaction.marker.topic",
        field="marker_topic",
        parse=text,
        default="`topic`",
        about=(
            "the topic whose first partition carries the replay markers. It is needed if rows name their topics, and "
            "if `topic` is changed for a query that goes on"
        ),
    ),
    Option(
        name="delivery.guarantee",
        field="exactly_once",
        parse=_exactly_once,
        default=f"`{EXACTLY_ONCE}`",
        about=(
            f"`{EXACTLY_ONCE}`, or `{AT_LEAST_ONCE}`, which writes without transactions as Spark's own sink does: rows "
            "are visible at once, and a repeated task writes them again"
        ),
    ),
    Option(
        name="transactional.id.prefix",
        field="name",
        parse=name_on_cluster,
        default="the query's id",
        about=(
            "the name of the job on the cluster, in transactional ids and groups. With it, a new checkpoint is "
            "refused if the job has written before from another one, because it would write everything again"
        ),
    ),
    Option(
        name="transaction.scope",
        field="transaction_scope",
        parse=one_of(TASK_SCOPE, BATCH_SCOPE),
        default=f"`{TASK_SCOPE}`",
        about=(
            "the part that one transaction covers: `task`, or `batch` for the whole micro-batch. With `batch` one "
            "request commits it on every cluster; then only one task may write to a partition, and a failed task "
            "fails the batch"
        ),
    ),
    Option(
        name="kafka.transaction.timeout.ms",
        field="transaction_timeout_ms",
        parse=positive,
        default="900000",
        about=(
            "a batch must be written and decided within this time. It is at most the brokers' "
            "`transaction.max.timeout.ms`"
        ),
    ),
    Option(
        name="kafka.delivery.timeout.ms",
        field="delivery_timeout_ms",
        parse=positive,
        default="120000",
        about=(
            "the time for which a write, or a call, is tried without success. The time that a query computes does "
            "not count"
        ),
    ),
    Option(
        name="kafka.batch.size",
        field="batch_size_bytes",
        parse=positive,
        default="262144",
        about="the bytes of a record batch",
    ),
    Option(
        name="kafka.compression.type",
        field="compression",
        parse=one_of(*COMPRESSION),
        default="`none`",
        about="`none`, `gzip`, `snappy`, `lz4` or `zstd`",
    ),
    Option(
        name="kafka.acks",
        field=None,
        parse=only("all", "-1", why=_DEPENDS_ON_IT),
        default="`all`",
        about="no other value is allowed",
    ),
    Option(
        name="kafka.enable.idempotence",
        field=None,
        parse=only("true", why=_DEPENDS_ON_IT),
        default="`true`",
        about="no other value is allowed",
    ),
    Option(
        name="includeHeaders",
        field=None,
        parse=flag,
        default="",
        about="accepted without effect: the sink takes a column `headers` wherever there is one",
    ),
    Option(
        name="replay.deterministic",
        field="replay_deterministic",
        parse=flag,
        default="`false`",
        about="`true` is the promise that a repeated batch puts every row into the same task again; see the limits",
    ),
    Option(
        name="checkpoint.moved.from",
        field="checkpoint_moved_from",
        parse=text,
        default="none",
        about="the place where this checkpoint was before it was moved here. It tells a moved checkpoint from a copy",
    ),
    Option(
        name="checkpoint.adopt.batch",
        field="adopted_batch",
        parse=whole,
        default="none",
        about=(
            "the number of one batch that the sink writes although nobody knows whether its rows were written "
            "before, so they may then be there twice. If it is needed, an error says so and names the batch"
        ),
    ),
    Option(
        name="queryName",
        field="query_name",
        parse=text,
        default="none",
        about="Spark sets it to the name in `.queryName(...)`; `exacta transactions list` shows it",
    ),
    Option(
        name="path",
        field=None,
        parse=path_instead_of("topic"),
        default="",
        about='refused: `save("orders")` and `start("orders")` name no topic; use `topic`',
    ),
)


_NO_CHECKPOINT = (
    "writing needs option 'checkpointLocation' as an .option(...) of the writer, also where the session has a default: "
    "the query's identity lies there, and the sink notes there what it is called on the cluster"
)
"""The sentence for a stream without a checkpoint."""

_NO_MARKER_TOPIC = (
    "writing needs a topic: set option 'topic'; or, where rows name their topics in a column 'topic', set option "
    "'transaction.marker.topic' to the one whose first partition shall carry the replay markers"
)
"""The sentence for a writer that does not know its topics beforehand."""


def sink_options(options: Mapping[str, str], *, stream: bool = False) -> SinkOptions:
    """Return the options of a writer, and of one of a `stream`, which needs a checkpoint; raises `OptionError`."""
    parsed = parse(options, (*SINK, *COMMON_REFUSED, *PRODUCER_REFUSED), "writing")
    judge_sink(parsed, options, stream=stream)
    return SinkOptions(**parsed.finished())


def judge_sink(parsed: Parsed, options: Mapping[str, str], *, stream: bool = False) -> None:
    """Note what a writer's options lack, and which of them do not go together."""
    judge_connection(parsed, "writing")
    if stream and parsed.lacks("checkpoint_location"):
        parsed.problems.append(_NO_CHECKPOINT)
    if parsed.values.get("exactly_once") is False:
        with parsed.noting():
            refuse_without_effect(options, _OF_TRANSACTIONS, AT_LEAST_ONCE_NEEDS_NONE)
        return
    if parsed.lacks("topic") and parsed.lacks("marker_topic"):
        parsed.problems.append(_NO_MARKER_TOPIC)
    if parsed.values.get("transaction_scope") == BATCH_SCOPE:
        # What was committed in part under the scope of a task is to be finished under that one.
        with parsed.noting():
            refuse_without_effect(
                options,
                ("replay.deterministic",),
                f"with option 'transaction.scope' {BATCH_SCOPE}, where no part of a batch is committed without the "
                "others",
            )
