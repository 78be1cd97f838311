"""Print a run: the table of results with verdicts, the table of costs, and a Markdown report that holds both.

One rendering serves both ends: Markdown tables whose columns are padded read well in a terminal too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from benchmarks.bounds import BOUNDS, Verdict, judge, ratio
from benchmarks.figures import COST, RESULT, FigureKey, Results, Summary, summarise
from benchmarks.session import CLIENT_IS_THE_LIMIT, Scale

NOT_MEASURED = "–"
BUSIEST_THREAD = "busiest client thread, cores"


ScaleType = TypeVar("ScaleType")


@dataclass(frozen=True, kw_only=True)
class Circumstances(Generic[ScaleType]):
    """Everything that a reader must know besides the figures."""

    date: str
    command: str
    versions: Sequence[str]
    machine: Sequence[str]
    rounds: int
    scale: ScaleType


def number(value: float) -> str:
    """Return a number with about three significant digits."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 1 or value == 0 else f"{value:.3g}"


def spread(summary: Summary | None) -> str:
    """Return median (minimum–maximum), or the value alone where there was one round."""
    if summary is None:
        return NOT_MEASURED
    if summary.rounds == 1:
        return number(summary.median)
    return f"{number(summary.median)} ({number(summary.minimum)}–{number(summary.maximum)})"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with padded columns."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return "\n".join([line(header), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, rows)])


def result_table(results: Results) -> str:
    """Return the table of what a user gets: the first broker is held against the second, if there is one."""
    subject, *others = results.brokers
    compared = bool(others)
    header = ["case", "figure", *(f"{broker}: median (min–max)" for broker in results.brokers)]
    header += (["ratio"] if compared else []) + ["bound", "verdict"]
    rows = []
    for key in results.keys(RESULT):
        summaries = [results.summary(broker, key) for broker in results.brokers]
        row = [*key, *map(spread, summaries)]
        if compared:
            of_medians = ratio(summaries[0], summaries[1])
            row.append(NOT_MEASURED if of_medians is None else f"{of_medians:.2f}")
        bound = BOUNDS.get(key)
        row += ["", ""] if bound is None else [str(bound), verdict(results, key).value]
        rows.append(row)
    return table(header, rows) if rows else f"Nothing could be measured of {subject}."


def verdict(results: Results, key: FigureKey) -> Verdict:
    """Judge one figure that has a bound."""
    subject, *others = results.brokers
    reference = results.summary(others[0], key) if others else None
    return judge(BOUNDS[key], results.summary(subject, key), reference)


def missed(results: Results, *, required: bool) -> list[FigureKey]:
    """Return the figures that miss what is required of them; or, if not `required`, those that miss their aim."""
    keys = [key for key in results.keys(RESULT) if key in BOUNDS and BOUNDS[key].required is required]
    return [key for key in keys if verdict(results, key) is Verdict.NOT]


def missed_lines(results: Results) -> list[str]:
    """Return one line for each figure that misses its bound."""
    aims = [f"aim not reached: {case}, {name}" for case, name in missed(results, required=False)]
    return [*aims, *(f"not met: {case}, {name}" for case, name in missed(results, required=True))]


def has_failed(results: Results) -> bool:
    """Return whether the run is to end with 1: a case failed, or something required was missed; an aim never counts."""
    return bool(results.failures or missed(results, required=True))


def cost_table(results: Results) -> str:
    """Return the table of what the results took, in medians, one row for each case and broker."""
    keys = results.keys(COST)
    names = list(dict.fromkeys(name for _, name in keys))
    header = ["case", "broker", *names, "limit"]
    rows = []
    for case in dict.fromkeys(case for case, _ in keys):
        for broker in results.brokers:
            medians = {
                name: summary.median
                for each, name in keys
                if each == case and (summary := results.summary(broker, (each, name))) is not None
            }
            if not medians:
                continue
            limit = "client" if medians.get(BUSIEST_THREAD, 0.0) >= CLIENT_IS_THE_LIMIT else ""
            cells = [number(medians[name]) if name in medians else NOT_MEASURED for name in names]
            rows.append([case, broker, *cells, limit])
    return table(header, rows) if rows else ""


def failure_lines(results: Results) -> list[str]:
    """Return one line for each case that failed."""
    return [
        f"{failure.case} with {failure.broker}, round {failure.round_number}: {failure.reason}"
        for failure in results.failures
    ]


def markdown(results: Results, circumstances: Circumstances[Scale]) -> str:
    """Return the whole report."""
    rounds = f"{circumstances.rounds} round" + ("" if circumstances.rounds == 1 else "s")
    scale = circumstances.scale
    order = ", the brokers taking turns at each case" if len(results.brokers) > 1 else ""
    parts = [
        f"# Benchmark: {' beside '.join(results.brokers)}",
        f"Made on {circumstances.date} by `{circumstances.command}`: {rounds}{order}, "
        f"each turn on a broker started for it on empty data: {number(scale.warm_up_s)} s of the case's own load "
        f"({number(scale.bulk_warm_up_s)} s of bulk data) as warm-up, then {number(scale.seconds)} s measured.",
        "\n".join(f"- {line}" for line in [*circumstances.versions, *circumstances.machine, _disk(results)]),
        "## Results",
        result_table(results),
    ]
    if failures := failure_lines(results):
        parts += ["## Failed", "\n".join(f"- {line}" for line in failures)]
    if costs := cost_table(results):
        parts += [
            "## Costs",
            "Medians, for the measured part alone. Where one thread of the client kept a core busy nearly all the "
            "time, the client is given as the limit. *Others* is what the rest of the machine used meanwhile: where "
            "that is much, the figures are worth little.",
            costs,
        ]
    return "\n\n".join(parts) + "\n"


def _disk(results: Results) -> str:
    if not results.sync_latencies_ms:
        return "fdatasync: not measured"
    return f"fdatasync of a 4 KB append, p50 before each turn: {spread(summarise(results.sync_latencies_ms))} ms"
