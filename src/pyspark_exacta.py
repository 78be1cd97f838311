"""What Spark finds by itself: modules named `pyspark_*` with a `DefaultSource` are registered without a call."""

from exacta.spark.datasource import ExactaDataSource as DefaultSource

__all__ = ["DefaultSource"]
