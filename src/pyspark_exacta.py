"""Spark finds this module by itself: it registers modules named `pyspark_*` with a `DefaultSource` without a call."""

from exacta.spark.datasource import ExactaDataSource as DefaultSource

__all__ = ["DefaultSource"]
