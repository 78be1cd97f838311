"""Spark's daemon for Python workers, which has imported what they need before it forks them.

In a campaign that kills dozens of workers most of the time would otherwise go into imports.
"""

import pandas  # noqa: F401
import pyarrow  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
