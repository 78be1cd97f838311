"""The report of a run beside Spark's own connector, as Markdown.

Owns what is said around the tables; the tables and their verdicts are those of the broker's benchmark.
"""

from __future__ import annotations

import re

from benchmarks.figures import Results, summarise
from benchmarks.report import Circumstances, cost_table, failure_lines, result_table, spread, table
from benchmarks.spark.job import DRIVER_MEMORY, MASTER, WARM_UPS
from benchmarks.spark.turns import BULK_PARTITIONS, SMALL_PARTITIONS, SMALL_ROWS, Scale
from exacta.spark.session import SETTINGS


def markdown(results: Results, circumstances: Circumstances[Scale]) -> str:
    """Return the whole report."""
    scale = circumstances.scale
    disk = f"fdatasync of a 4 KB append, p50 before each turn: {spread(summarise(results.sync_latencies_ms))} ms"
    rounds = f"{circumstances.rounds} round" + ("" if circumstances.rounds == 1 else "s")
    parts = [
        "# Benchmark: source and sink beside Spark's own Kafka connector",
        f"Made on {circumstances.date} by `{circumstances.command}`: {rounds}, the sides taking turns at each case, "
        "each turn with an Apache Kafka and a Spark process of its own. Exacta's sink writes exactly once, in "
        "transactions; Spark's own writes at least once.",
        f"- *topic to topic*: {scale.rows:,} rows without keys from {BULK_PARTITIONS} partitions through `upper` to "
        f"{BULK_PARTITIONS} partitions, `Trigger.AvailableNow`, batches of {scale.rows_per_batch:,}; rows/s is all "
        "rows by the sum of Spark's times of the batches (`triggerExecution`)\n"
        "- *source alone*: keys and values as they come, into `noop`; here as everywhere Exacta is told by "
        '`.schema("key binary, value binary")` that no other columns are needed\n'
        f"- *small batch*: {SMALL_ROWS} rows of 100 B in {SMALL_PARTITIONS} partitions, `processingTime=0`, "
        f"{scale.small_batches} batches; *by the driver* is `exacta.spark.write` in `foreachBatch`, held against the "
        "same turns of Spark's own, as is *collected only*: the function calls `toArrow()` and writes nothing; *read "
        "only*: into `noop`\n"
        f"- before what counts, the same query runs in the same process over {scale.warm_up_rows:,} rows {WARM_UPS} "
        f"times ({scale.warm_up_small_batches} small batches): until then the virtual machine compiles, which takes a "
        "third of the processors; afterwards a reader counts the rows of the output topic",
        "\n".join(f"- {line}" for line in [*circumstances.versions, *circumstances.machine, disk]),
        "## Results",
        result_table(results),
    ]
    if failures := failure_lines(results):
        parts += ["## Failed", "\n".join(f"- {line}" for line in failures)]
    if costs := cost_table(results):
        parts += ["## Costs", "Medians. Of small batches: Spark's own account of their steps.", costs]
    parts += ["## Settings", f"Of both sides alike; `{MASTER}`, `spark.driver.memory` {DRIVER_MEMORY}.", _settings()]
    return "\n\n".join(parts) + "\n"


def _settings() -> str:
    # Of a class the last name says enough.
    values = {name: re.sub(r"^org\.[\w.]*\.", "", setting.value) for name, setting in SETTINGS.items()}
    rows = [[f"`{name}`", f"`{values[name]}`", setting.why] for name, setting in SETTINGS.items()]
    return table(["setting", "value", "why"], rows)
