"""`format("exacta")`: the entry that Spark finds.

Owns the name, the schema and the choice of reader and writer. Spark constructs it in several processes, so it holds
nothing but the options.
"""

from __future__ import annotations

from typing import Any, NoReturn

from pyspark.sql.datasource import DataSource

from exacta.spark.batch import ExactaBatchReader
from exacta.spark.options import OptionError, includes_headers, sink_options, source_options
from exacta.spark.rows import check_write_columns, read_schema
from exacta.spark.sink import ExactaStreamWriter
from exacta.spark.source import ExactaStreamReader


class ExactaDataSource(DataSource):  # type: ignore[misc]
    """Topics of a Kafka cluster or of Exacta as a source and a sink, exactly once."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(...)`."""
        return "exacta"

    def schema(self) -> Any:
        """Return the columns of a reader: those of Spark's Kafka connector."""
        return read_schema(include_headers=includes_headers(self.options))

    def streamReader(self, schema: Any) -> ExactaStreamReader:
        """Return the reader of a streaming query."""
        return ExactaStreamReader(source_options(self.options), schema)

    def streamWriter(self, schema: Any, overwrite: bool) -> ExactaStreamWriter:
        """Return the writer of a streaming query. Complete mode appends each result, as Spark's Kafka sink does."""
        options = sink_options(self.options)
        check_write_columns({field.name: field.dataType.simpleString() for field in schema.fields}, options.topic)
        return ExactaStreamWriter(options)

    def reader(self, schema: Any) -> ExactaBatchReader:
        """Return the reader of a batch."""
        return ExactaBatchReader(source_options(self.options, batch=True), schema)

    def writer(self, schema: Any, overwrite: bool) -> NoReturn:
        """Refuse: batch writing is not there yet."""
        raise OptionError(
            'format("exacta") writes streams: use df.writeStream (with Trigger.AvailableNow for one pass)'
        )
