"""The options of `format("exacta")`, named and spelt as Spark's own Kafka connector has them.

One table for each side (`source.py`, `sink.py`), with name, default and what the reference says; `connection.py` has
what both share. Our own options, which the Kafka connector has not, have a dot and no `kafka.` in front.
"""

from exacta.spark.options.offsets import EARLIEST, LATEST, AtTime, Bound
from exacta.spark.options.parsing import OptionError
from exacta.spark.options.sink import AT_LEAST_ONCE, BATCH_SCOPE, EXACTLY_ONCE, TASK_SCOPE, SinkOptions, sink_options
from exacta.spark.options.source import SourceOptions, includes_headers, source_options

__all__ = [
    "AT_LEAST_ONCE",
    "BATCH_SCOPE",
    "EARLIEST",
    "EXACTLY_ONCE",
    "LATEST",
    "TASK_SCOPE",
    "AtTime",
    "Bound",
    "OptionError",
    "SinkOptions",
    "SourceOptions",
    "includes_headers",
    "sink_options",
    "source_options",
]
