"""The command line: `python -m benchmarks [--beside-kafka | --bootstrap HOST:PORT] [--case NAME ...] [--rounds N]`."""

import argparse
import contextlib
import datetime
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.brokers import ExactaLauncher, KafkaLauncher, Launcher, RunningLauncher
from benchmarks.cases import CASES
from benchmarks.kafka.distribution import CACHE, KafkaUnavailableError, fetch
from benchmarks.machine import facts
from benchmarks.runner import Plan, run
from benchmarks.session import Scale

RESULTS = Path(__file__).resolve().parent / "results"
MEMORY_FILE_SYSTEMS = {"tmpfs", "ramfs"}


def parser() -> argparse.ArgumentParser:
    """Describe the options."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure a broker that speaks Kafka's protocol."
    )
    target = made.add_mutually_exclusive_group()
    target.add_argument("--beside-kafka", action="store_true", help="measure Exacta and Apache Kafka in turn")
    target.add_argument("--bootstrap", metavar="HOST:PORT", help="measure the broker that runs there")
    made.add_argument("--case", action="append", choices=sorted(CASES), help="a case; may be repeated (default: all)")
    made.add_argument("--rounds", type=int, default=3, help="rounds, of which the median is taken (default: 3)")
    made.add_argument(
        "--warm-up",
        type=float,
        metavar="SECONDS",
        help="load before each timed part (default: 15 beside Kafka, else 1)",
    )
    made.add_argument("--seconds", type=float, default=5.0, help="length of each timed case (default: 5)")
    made.add_argument(
        "--name", help="name of the report under benchmarks/results/ (default: by what is measured; none with --case)"
    )
    made.add_argument("--work", type=Path, help="folder for the brokers' data (default: .cache/ of the project)")
    made.add_argument("--list", action="store_true", help="list the cases")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 0 if all is well, 1 if a case failed or missed what is required, 2 if it cannot run.

    An aim that is not reached is told, and changes nothing of that.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = _parsed(given)
    if options.list:
        for case in CASES.values():
            print(f"{case.name:12} {case.title}")
        return 0
    # SIGTERM ends the run like Ctrl-C does: brokers and clients are ended, temporary data is removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with _work_folder(options.work or CACHE) as work:
            return _measure(options, given, work)
    except KafkaUnavailableError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _parsed(given: Sequence[str]) -> argparse.Namespace:
    checked = parser()
    options = checked.parse_args(given)
    if options.rounds < 1:
        checked.error("--rounds must be at least 1")
    if options.warm_up is not None and options.warm_up <= 0:
        checked.error("--warm-up must be above 0")
    if options.seconds <= 0:
        checked.error("--seconds must be above 0")
    if options.bootstrap is not None:
        host, _, port = options.bootstrap.rpartition(":")
        if not host or not port.isdecimal():
            checked.error(f"--bootstrap must be HOST:PORT, not {options.bootstrap}")
    return options


@contextlib.contextmanager
def _work_folder(parent: Path) -> Iterator[Path]:
    """Make a folder for the brokers' data that goes when the run ends."""
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=parent) as folder:
        yield Path(folder)


def _measure(options: argparse.Namespace, given: Sequence[str], work: Path) -> int:
    launchers = _launchers(options, work)
    machine = facts(work)
    if any(f"data on {each}" in line for each in MEMORY_FILE_SYSTEMS for line in machine):
        print(
            "warning: the data folder is in memory, so that a sync costs nothing; name another with --work",
            file=sys.stderr,
        )
    cases = [case for name, case in CASES.items() if not options.case or name in options.case]
    scale = Scale(seconds=options.seconds, warm_up_s=_warm_up_s(options))
    plan = Plan(cases=cases, rounds=options.rounds, scale=scale)
    results = run(launchers, plan, work, lambda line: print(line, flush=True))
    circumstances = report.Circumstances(
        date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        command=" ".join(["python -m benchmarks", *_without_paths(given)]),
        versions=[launcher.versions() for launcher in launchers],
        machine=machine,
        rounds=plan.rounds,
        scale=scale,
    )
    text = report.markdown(results, circumstances)
    print(f"\n{text}")
    if name := _report_name(options):
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.md").write_text(text)
        print(f"written to benchmarks/results/{name}.md")
    for line in report.missed_lines(results):
        print(line, file=sys.stderr)
    for line in report.failure_lines(results):
        print(f"failed: {line}", file=sys.stderr)
    return 1 if report.has_failed(results) else 0


def _launchers(options: argparse.Namespace, work: Path) -> list[Launcher]:
    if options.bootstrap is not None:
        return [RunningLauncher(options.bootstrap)]
    if options.beside_kafka:
        return [ExactaLauncher(work), KafkaLauncher(work, fetch())]
    return [ExactaLauncher(work)]


def _warm_up_s(options: argparse.Namespace) -> float:
    """Return the time asked for; beside Kafka one that brings a broker on a virtual machine past its first seconds."""
    if options.warm_up is not None:
        return float(options.warm_up)
    return 15.0 if options.beside_kafka else 1.0


def _without_paths(given: Sequence[str]) -> list[str]:
    """Return the arguments without --work: a report is published, where the data lay is nobody's business."""
    shown = [each for each in given if not each.startswith("--work=")]
    if "--work" in shown:
        index = shown.index("--work")
        del shown[index : index + 2]
    return shown


def _report_name(options: argparse.Namespace) -> str | None:
    """Return the name asked for, or one by what is measured; some cases alone must not replace a whole report."""
    if options.name is not None or options.case:
        return str(options.name) if options.name is not None else None
    if options.bootstrap is not None:
        return "bootstrap"
    return "beside-kafka" if options.beside_kafka else "exacta"


if __name__ == "__main__":
    sys.exit(main())
