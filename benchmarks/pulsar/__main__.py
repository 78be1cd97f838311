"""The command line: `python -m benchmarks.pulsar [--case NAME ...] [--rounds N] [--alone]`, by `make bench-pulsar`."""

import argparse
import datetime
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.__main__ import RESULTS
from benchmarks.brokers import Launcher
from benchmarks.figures import Results
from benchmarks.kafka.distribution import CACHE
from benchmarks.machine import facts
from benchmarks.pulsar.brokers import ExactaLauncher, PulsarLauncher
from benchmarks.pulsar.cases import cases
from benchmarks.pulsar.client import JavaClient
from benchmarks.pulsar.distribution import PULSAR_VERSION, PulsarUnavailableError, compile_load, fetch
from benchmarks.runner import Plan, run
from benchmarks.session import Scale

REPORT = "beside-pulsar"
ROUNDS = 5
WARM_UP_S = 15.0
SMOKE = Scale(seconds=1.0, warm_up_s=0.5)


def parser() -> argparse.ArgumentParser:
    """Describe the options."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.pulsar",
        description="Measure Exacta and Apache Pulsar in turn, by Pulsar's own client for Java.",
    )
    made.add_argument("--case", action="append", metavar="NAME", help="a case; may be repeated (default: all)")
    made.add_argument("--rounds", type=int, default=ROUNDS, help="rounds, of which the median is taken (default: 5)")
    made.add_argument("--warm-up", type=float, default=WARM_UP_S, metavar="SECONDS", help="default: 15")
    made.add_argument("--seconds", type=float, default=5.0, help="length of each timed case (default: 5)")
    made.add_argument("--alone", action="store_true", help="measure Exacta alone")
    made.add_argument("--smoke", action="store_true", help="little load, one round: does it run? Figures mean nothing")
    made.add_argument("--name", help="name of the report under benchmarks/results/ (default: by what is measured)")
    made.add_argument("--list", action="store_true", help="list the cases")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; return 0 if all turns ran (aims may be missed), 1 if one failed, 2 if it cannot run."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = parser().parse_args(given)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="benchmark-", dir=CACHE) as folder:
            return _measure(options, given, Path(folder))
    except PulsarUnavailableError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _measure(options: argparse.Namespace, given: Sequence[str], work: Path) -> int:
    jars = fetch()
    known = cases(JavaClient(jars=jars, classes=compile_load(jars, work)))
    if options.list or set(options.case or ()) - set(known):
        for case in known.values():
            print(f"{case.name:24} {case.title}")
        return 0 if options.list else 2
    launchers: list[Launcher] = [ExactaLauncher(work)]
    if not options.alone:
        launchers.append(PulsarLauncher(work, jars))
    scale = SMOKE if options.smoke else Scale(seconds=options.seconds, warm_up_s=options.warm_up)
    plan = Plan(
        cases=[case for name, case in known.items() if not options.case or name in options.case],
        rounds=1 if options.smoke else options.rounds,
        scale=scale,
    )
    is_whole = not (options.case or options.smoke or options.alone)
    name = options.name or (REPORT if is_whole else None)

    def tell(results: Results, round_number: int) -> None:
        """Report the rounds that there are, so that a run which is interrupted has not been for nothing."""
        circumstances = report.Circumstances(
            date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
            command=" ".join(["python -m benchmarks.pulsar", *given]),
            versions=[launcher.versions() for launcher in launchers],
            machine=[*facts(work, f"Pulsar's for Java, {PULSAR_VERSION}"), *_notes(plan)],
            rounds=round_number,
            scale=scale,
        )
        text = report.markdown(results, circumstances)
        if name is not None:
            RESULTS.mkdir(exist_ok=True)
            (RESULTS / f"{name}.md").write_text(text)
        if round_number == plan.rounds:
            print(f"\n{text}")

    results = run(launchers, plan, work, lambda line: print(line, flush=True), tell)
    if name is not None:
        print(f"written to benchmarks/results/{name}.md")
    for line in [] if options.smoke else report.missed_lines(results):
        print(line, file=sys.stderr)
    for line in report.failure_lines(results):
        print(f"failed: {line}", file=sys.stderr)
    return 1 if report.has_failed(results) else 0


def _notes(plan: Plan) -> list[str]:
    scale = plan.scale
    counted = f"{100 * scale.warm_up_s:,.0f} transactions of `pulsar-ctp-*` as warm-up, then {100 * scale.seconds:,.0f}"
    return [f"{counted}; afterwards a reader has found every message that was acknowledged, once"] + [
        f"`{case.name}`: {case.title}" for case in plan.cases
    ]


if __name__ == "__main__":
    sys.exit(main())
