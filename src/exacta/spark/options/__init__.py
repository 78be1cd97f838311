"""The options of `format("exacta")`, named and spelt as Spark's own Kafka connector has them.

There is one table for each side (`source.py`, `sink.py`), with each option's name, default and text for the reference.
`connection.py` has the options that both sides share. Our own options, which the Kafka connector does not have, have a
dot in their name and no `kafka.` in front.
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
