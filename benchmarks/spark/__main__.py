"""The command line: `python -m benchmarks.spark [--case NAME ...] [--rounds N] [--smoke]`, by `make bench-spark`."""

from __future__ import annotations

import argparse
import datetime
import signal
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from tests.spark_connector.connector import CONNECTOR_VERSION, ConnectorUnavailableError, connector_jars

from benchmarks.__main__ import RESULTS
from benchmarks.brokers import KafkaLauncher
from benchmarks.kafka.distribution import CACHE, KafkaUnavailableError, fetch
from benchmarks.machine import facts
from benchmarks.report import Circumstances, failure_lines, has_failed, missed_lines
from benchmarks.spark import report
from benchmarks.spark.turns import CASES, Scale, Turns

SMOKE = Scale(rows=40_000, rows_per_batch=20_000, small_batches=15)
REPORT = "beside-spark"


def parser() -> argparse.ArgumentParser:
    """Describe the options."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.spark", description='Measure format("exacta") beside Spark\'s own Kafka connector.'
    )
    made.add_argument("--case", action="append", choices=sorted(CASES), help="a case; may be repeated (default: all)")
    made.add_argument("--rounds", type=int, help="rounds, of which the median is taken (default: 3)")
    made.add_argument("--smoke", action="store_true", help="few rows, one round: does it run? Figures mean nothing")
    made.add_argument(
        "--name", help="name of the report under benchmarks/results/ (default: beside-spark if all is run)"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; return 0 if all turns ran (aims may be missed), 1 if one failed, 2 if it cannot run."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = parser().parse_args(given)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        jars, kafka = connector_jars(_spark_jars()), fetch()
    except (ConnectorUnavailableError, KafkaUnavailableError) as error:
        print(error, file=sys.stderr)
        return 2
    cases = [case for name, case in CASES.items() if not options.case or name in options.case]
    scale, rounds = (SMOKE if options.smoke else Scale()), options.rounds or (1 if options.smoke else 3)
    try:
        with tempfile.TemporaryDirectory(prefix="benchmark-", dir=CACHE) as folder:
            work = Path(folder)
            launcher = KafkaLauncher(work, kafka)
            machine = facts(work)
            results = Turns(launcher, jars, scale, work, lambda line: print(line, flush=True)).run(cases, rounds)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    circumstances = Circumstances(
        date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        command=" ".join(["python -m benchmarks.spark", *given]),
        versions=[
            f"Exacta {version('exacta-log')} and Spark's own connector {CONNECTOR_VERSION}, on PySpark "
            f"{version('pyspark')}, pyarrow {version('pyarrow')}, Python {'.'.join(map(str, sys.version_info[:3]))}",
            launcher.versions(),
        ],
        machine=machine,
        rounds=rounds,
        scale=scale,
    )
    text = report.markdown(results, circumstances)
    print(f"\n{text}")
    whole = not options.case and not options.smoke
    if name := options.name or (REPORT if whole else None):
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.md").write_text(text)
        print(f"written to benchmarks/results/{name}.md")
    for line in [] if options.smoke else missed_lines(results):
        print(line, file=sys.stderr)
    for line in failure_lines(results):
        print(f"failed: {line}", file=sys.stderr)
    return 1 if has_failed(results) else 0


def _spark_jars() -> Path:
    """Return the folder of PySpark's own jars, without importing it."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "jars"


if __name__ == "__main__":
    sys.exit(main())
