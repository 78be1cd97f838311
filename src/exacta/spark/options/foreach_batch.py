"""The options of `exacta.spark.write`: those of a writer, and what only foreachBatch needs."""

from collections.abc import Mapping

from msgspec import Struct

from exacta.spark.options.kafka_clients import COMMON_REFUSED, PRODUCER_REFUSED
from exacta.spark.options.parsing import Option, Parsed, parse, positive_long, refuse_without_effect, whole
from exacta.spark.options.sink import (
    AT_LEAST_ONCE,
    AT_LEAST_ONCE_NEEDS_NONE,
    SINK,
    SinkOptions,
    judge_sink,
    name_on_cluster,
)


class ForeachBatchOptions(Struct, frozen=True, kw_only=True):
    """The options of a call of `write`."""

    sink: SinkOptions
    sink_name: str | None = None
    driver_rows: int = 5_000
    driver_bytes: int = 16 * 1024 * 1024


FOREACH_BATCH = (
    Option(
        name="sink.name",
        field="sink_name",
        parse=name_on_cluster,
        default="none",
        about=(
            "needed if a query writes to several sinks: each sink except one has a name of its own, which never changes"
        ),
    ),
    Option(
        name="driver.rows",
        field="driver_rows",
        parse=whole,
        default="5000",
        about=(
            "the driver alone writes a batch of at most this many rows, in one transaction; 0 means never, for batches "
            "that are expensive to compute: a batch that turns out to be larger is computed twice"
        ),
    ),
    Option(
        name="driver.bytes",
        field="driver_bytes",
        parse=positive_long,
        default="16777216",
        about=(
            "the same limit in bytes, estimated by the rows of the batches before (1 KiB while none was seen). A "
            "partition may send the driver its share of it; if it has more, tasks write. "
            "Raise it where the rows lie mostly in one of many partitions"
        ),
    ),
)


def foreach_batch_options(
    options: Mapping[str, str], *, acknowledges: bool = False
) -> tuple[ForeachBatchOptions, dict[str, str]]:
    """Return the options of a call of `write`, and those of them that are a writer's; raises `OptionError`."""
    parsed = parse_foreach_batch(options, acknowledges=acknowledges)
    values = parsed.finished()
    own = {option.field: values.pop(option.field) for option in FOREACH_BATCH if option.field in values}
    return ForeachBatchOptions(sink=SinkOptions(**values), **own), _split(options)[1]


def parse_foreach_batch(options: Mapping[str, str], *, acknowledges: bool = False) -> Parsed:
    """Return what the options of a call of `write` say, which `acknowledges` messages, and all that is wrong."""
    own, writers = _split(options)
    table = (*FOREACH_BATCH, *SINK, *COMMON_REFUSED, *PRODUCER_REFUSED)
    parsed = parse(options, table, "writing")
    judge_sink(parsed, writers)
    if parsed.values.get("exactly_once") is False:
        with parsed.noting():
            refuse_without_effect(own, ("driver.rows", "driver.bytes"), AT_LEAST_ONCE_NEEDS_NONE)
    if acknowledges and parsed.values.get("exactly_once") is False:
        parsed.problems.append(_NO_TRANSACTION)
    if acknowledges and parsed.values.get("replay_deterministic"):
        parsed.problems.append(_NEVER_THE_SAME)
    return parsed


_NO_TRANSACTION = (
    f"argument 'acknowledge' needs transactions: leave option 'delivery.guarantee' {AT_LEAST_ONCE} out, or acknowledge "
    "the messages by their consumer after the call"
)
_NEVER_THE_SAME = (
    "argument 'acknowledge' and option 'replay.deterministic' contradict each other: a repeated batch gets other "
    "messages from a work queue, and so other rows; leave the option out"
)


def _split(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options that only `write` knows, and those of a writer."""
    names = {option.name.lower() for option in FOREACH_BATCH}
    own = {name: value for name, value in options.items() if name.lower() in names}
    return own, {name: value for name, value in options.items() if name.lower() not in names}
