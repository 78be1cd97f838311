"""The schemas of rows in both directions: as they are read, and as they are written to a topic.

This module owns the columns of Spark's Kafka connector: what a reader yields, what a writer accepts, and the checks
with their sentences. It does not talk to a broker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from exacta.client.transactions import TopicPartition
from exacta.spark.options import OptionError

if TYPE_CHECKING:
    from exacta.spark.arrow.decoding import Columns

# Column -> the types it may have, by Spark's simple names.
_WRITE_TYPES = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
}


def read_schema(*, include_headers: bool) -> Any:
    """Return the columns of a reader, as a pyspark `StructType`."""
    from pyspark.sql.types import (
        ArrayType,
        BinaryType,
        IntegerType,
        LongType,
        StringType,
        StructType,
        TimestampType,
    )

    schema = (
        StructType()
        .add("key", BinaryType())
        .add("value", BinaryType())
        .add("topic", StringType())
        .add("partition", IntegerType())
        .add("offset", LongType())
        .add("timestamp", TimestampType())
        .add("timestampType", IntegerType())
    )
    header = StructType().add("key", StringType()).add("value", BinaryType())
    return schema.add("headers", ArrayType(header)) if include_headers else schema


def check_read_columns(schema: Any, *, include_headers: bool) -> None:
    """Check the columns that a user has chosen by `.schema(...)`, a `StructType`; raises `OptionError`.

    Spark does not tell a source in Python which columns a query needs, so a user may do so if their cost counts.
    """
    known = {field.name.lower(): field.dataType for field in read_schema(include_headers=True).fields}
    seen: set[str] = set()
    for field in schema.fields:
        name = field.name.lower()
        if name not in known:
            raise OptionError(f"there is no column '{field.name}' to read; the columns are: {', '.join(known)}")
        if name in seen:
            raise OptionError(f"column '{name}' is in the schema twice")
        seen.add(name)
        if field.dataType != known[name]:
            raise OptionError(
                f"column '{name}' is {known[name].simpleString()}, not {field.dataType.simpleString()}: read it as it "
                "is, and cast it"
            )
    if not seen:
        raise OptionError("the schema has no columns: name at least one that is to be read")
    if include_headers and "headers" not in seen:
        raise OptionError("option 'includeHeaders' adds column 'headers', which the schema leaves out")


def check_write_columns(schema: Any, topic: str | None) -> None:
    """Check the columns of a writer's `StructType`; raises `OptionError` with all that is wrong.

    Names go without regard to case, as in Spark and in `rows_of`.
    """
    problems: list[str] = []
    columns: dict[str, str] = {}
    for field in schema.fields:
        name = field.name.lower()
        if name in columns:
            problems.append(f"there are two columns '{name}', of which only one can be written")
        columns[name] = field.dataType.simpleString()
    if "value" not in columns:
        problems.append(f"writing needs a column 'value' (string or binary); there are: {', '.join(columns) or 'none'}")
    if topic is None and "topic" not in columns:
        problems.append("writing needs a topic: set option 'topic', or give every row one in a column 'topic'")
    if unknown := [name for name in columns if name not in _WRITE_TYPES]:
        problems.append(_not_written(unknown))
    for name, found in columns.items():
        allowed = _WRITE_TYPES.get(name)
        if allowed is not None and found.lower().replace(" ", "") not in allowed:
            problems.append(f"column '{name}' must be of type {' or '.join(allowed)}, not {found}")
    if problems:
        raise OptionError(*problems)


def _not_written(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names)
    which = f"column {shown}" if len(names) == 1 else f"columns {shown}"
    return f"{which} cannot be written: select {', '.join(_WRITE_TYPES)} only"


class Rows(NamedTuple):
    """A batch of rows to write, by column; an absent column is None."""

    size: int
    topics: list[str | None] | None
    partitions: list[int | None] | None
    keys: Any  # pyarrow binary array
    values: Any  # the same
    headers: list[list[dict[str, Any]] | None] | None


def rows_of(batch: Any) -> Rows:
    """Return the columns of a pyarrow record batch."""
    import pyarrow as pa

    columns = {name.lower(): batch.column(index) for index, name in enumerate(batch.schema.names)}

    def binary(name: str) -> Any:
        column = columns.get(name)
        if column is None:
            return None
        # A string's bytes are its UTF-8: the cast copies nothing.
        large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
        return column.cast(pa.large_binary() if large else pa.binary())

    def listed(name: str) -> Any:
        column = columns.get(name)
        return None if column is None else column.to_pylist()

    return Rows(
        size=batch.num_rows,
        topics=listed("topic"),
        partitions=listed("partition"),
        keys=binary("key"),
        values=binary("value"),
        headers=listed("headers"),
    )


def to_arrow(schema: Any, partition: TopicPartition, columns: Columns, start: int, end: int) -> Any:
    """Return decoded records as a pyarrow record batch of a reader's schema, without those outside [start, end).

    `schema` is the pyarrow schema that Spark expects, to the letter; it may leave columns out.
    """
    import pyarrow as pa

    count = len(columns.offsets)
    made: dict[str, Callable[[Any], Any]] = {
        "key": lambda _: columns.keys,
        "value": lambda _: columns.values,
        "topic": lambda _: pa.repeat(pa.scalar(partition.topic, pa.string()), count),
        "partition": lambda _: pa.repeat(pa.scalar(partition.partition, pa.int32()), count),
        "offset": lambda _: pa.array(columns.offsets),
        "timestamp": lambda kind: pa.array(columns.timestamps_ms * 1000).view(kind),
        "timestamptype": lambda _: pa.array(columns.timestamp_types),
        "headers": lambda kind: columns.headers.cast(kind),
    }
    batch = pa.RecordBatch.from_arrays([made[field.name.lower()](field.type) for field in schema], schema=schema)
    # Offsets ascend.
    first, behind = columns.offsets.searchsorted((start, end))
    return batch if first == 0 and behind == count else batch.slice(first, behind - first)
