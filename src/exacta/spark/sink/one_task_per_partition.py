"""Place rows so that one task writes each partition, as 'transaction.scope' batch needs.

This module owns the helper that a user calls on a DataFrame before writing it. The partition of a row is what the sink
would choose by its key, as the Java client does; rows without a key are spread by their value, so that a replay places
them again as it did before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from exacta.spark.arrow.rows import check_write_columns
from exacta.spark.clients import client_of
from exacta.spark.options import OptionError, sink_options
from exacta.spark.sink.written_topics import partitions_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def one_task_per_partition(df: DataFrame, options: Mapping[str, str] | None = None, **named: str) -> DataFrame:
    """Return `df` with a column `partition`, and each partition's rows in one task.

    The options are those that the writer gets (the cluster and `topic` count). It costs one shuffle, into as many tasks
    as `spark.sql.shuffle.partitions` says. A row that names its partition keeps it. Raises `OptionError`, and
    `SinkError` where the topic does not exist.
    """
    given = sink_options({**(options or {}), **named})
    check_write_columns(df.schema, given.topic)
    if given.topic is None:
        raise OptionError(
            "one_task_per_partition needs option 'topic'; where rows name their topics, give them a column 'partition' "
            "and repartition by topic and partition"
        )
    count = partitions_of(client_of(given.cluster), given.topic)
    from pyspark.sql.types import IntegerType, StructField, StructType

    fields = [field for field in df.schema.fields if field.name.lower() != "partition"]
    schema = StructType([*fields, StructField("partition", IntegerType())])

    def place(batches: Iterator[Any]) -> Iterator[Any]:
        return (placed(batch, count) for batch in batches)

    return df.mapInArrow(place, schema).repartition("partition")


def placed(batch: Any, partitions: int) -> Any:
    """Return a pyarrow record batch with the column `partition` last, filled in where it was null or missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from exacta.spark.arrow.partitioner import partitions_of_keys

    names = [name.lower() for name in batch.schema.names]
    by_value = partitions_of_keys(_binary(batch.column(names.index("value"))), partitions)
    chosen = by_value
    if "key" in names:
        by_key = partitions_of_keys(_binary(batch.column(names.index("key"))), partitions)
        chosen = by_key.copy()
        chosen[by_key < 0] = by_value[by_key < 0]
    chosen[chosen < 0] = 0  # neither key nor value
    column = pa.array(chosen, pa.int32())
    if "partition" in names:
        column = pc.coalesce(batch.column(names.index("partition")), column)
    kept = [index for index, name in enumerate(names) if name != "partition"]
    return pa.RecordBatch.from_arrays(
        [*(batch.column(index) for index in kept), column],
        names=[*(batch.schema.names[index] for index in kept), "partition"],
    )


def _binary(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(pa.large_binary())
