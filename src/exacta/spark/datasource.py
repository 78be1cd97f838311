"""`format("exacta")`: the entry that Spark finds.

This module owns the name, the schema and the choice of reader and writer. Spark constructs it in several processes, so
it holds nothing but the options.
"""

from typing import Any

from pyspark.sql.datasource import DataSource

from exacta.spark.arrow.rows import check_read_columns, check_write_columns, read_schema
from exacta.spark.error_sentences import explained
from exacta.spark.options import OptionError, SourceOptions, includes_headers, sink_options, source_options
from exacta.spark.options.parsing import Parsed
from exacta.spark.sink.batch_sink import JOB_OPTION, ExactaBatchWriter, check_batch_options, job_of
from exacta.spark.sink.sink import ExactaStreamWriter
from exacta.spark.source.batch_reader import ExactaBatchReader
from exacta.spark.source.source import ExactaStreamReader, RefusedStreamReader


class ExactaDataSource(DataSource):  # type: ignore[misc]
    """Topics of a Kafka cluster or of Exacta as a source and a sink, exactly once."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(...)`."""
        return "exacta"

    @explained()
    def schema(self) -> Any:
        """Return the columns of a reader, unless the user chooses some: those of Spark's Kafka connector."""
        return read_schema(include_headers=includes_headers(self.options))

    @explained()
    def streamReader(self, schema: Any) -> ExactaStreamReader | RefusedStreamReader:
        """Return the reader of a streaming query."""
        try:
            return ExactaStreamReader(self._source_options(schema), schema)
        except OptionError as error:
            # Raised here, Spark (4.3) shows that it had no reader to stop, and not why.
            return RefusedStreamReader(error)

    @explained()
    def streamWriter(self, schema: Any, overwrite: bool) -> ExactaStreamWriter:
        """Return the writer of a streaming query. Complete mode appends each result, as Spark's Kafka sink does."""
        options = sink_options(self.options, stream=True)
        check_write_columns(schema, options.topic)
        return ExactaStreamWriter(options)

    @explained()
    def reader(self, schema: Any) -> ExactaBatchReader:
        """Return the reader of a batch."""
        return ExactaBatchReader(self._source_options(schema, batch=True), schema)

    @explained()
    def writer(self, schema: Any, overwrite: bool) -> ExactaBatchWriter:
        """Return the writer of a job that is no stream."""
        job = job_of(self.options)
        given = {name: value for name, value in self.options.items() if name.lower() != JOB_OPTION}
        problems = Parsed()
        if job is None:
            with problems.noting():
                check_batch_options(given, overwrite=overwrite)
        with problems.noting():
            options = sink_options(given)
        problems.finished()
        check_write_columns(schema, options.topic)
        return ExactaBatchWriter(options, job)

    def _source_options(self, schema: Any, *, batch: bool = False) -> SourceOptions:
        options = source_options(self.options, batch=batch)
        check_read_columns(schema, include_headers=options.include_headers)
        return options
