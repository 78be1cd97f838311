"""One life of a query, in a process of its own: `python -m tests.spark.pipelines '{"directory": …}'`.

It writes its process id into the directory, so that a fault can kill all of it.
"""

import json
import os
import sys
from pathlib import Path

from tests.spark import faults


def main(arguments):
    """Copy topic `source` to topic `sink` until all that is there is written."""
    from exacta.spark import session

    directory = Path(arguments["directory"])
    (directory / "pid").write_text(str(os.getpid()))
    faults.travel_by_value()
    spark = session(quick_start=True)
    spark.dataSource.register(faults.FaultySource)
    rows = (
        spark.readStream.format("exacta")
        .option("kafka.bootstrap.servers", arguments["bootstrap"])
        .option("subscribe", arguments["source"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", arguments["limit"])
        .load()
    )
    query = (
        # Which task gets a row depends on chance, so a replay slices the batch differently.
        rows.repartition(2)
        .select("key", "value")
        .writeStream.format("faulty")
        .option("fault.directory", str(directory))
        .option("kafka.bootstrap.servers", arguments["bootstrap"])
        .option("topic", arguments["sink"])
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
