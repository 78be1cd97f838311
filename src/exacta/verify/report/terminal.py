"""The report in the terminal: what was done, what was injected, what was found, each with one example."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from exacta.verify.analysis.verdict import Verdict
from exacta.verify.history import Outcome, Run

_WIDTH_ELSEWHERE = 160


def show(verdict: Verdict, console: Console) -> None:
    """Print the report."""
    if not console.is_terminal:
        console.width = _WIDTH_ELSEWHERE
    run = verdict.run
    console.print(
        f"run {run.run} on {escape(where(run))}, {', '.join(run.workloads)}, seed {run.seed}", highlight=False
    )
    console.print(_operations(verdict))
    console.print(_numbers("faults", verdict.faults or {"none": 0}))
    console.print(_numbers("seen", verdict.figures))
    for kind in verdict.information:
        console.print(f"[dim]allowed: {kind.title}, {verdict.counts[kind]} ×, as on any Kafka[/dim]", highlight=False)
    for kind in verdict.anomalies:
        console.print(
            f"[bold red]{kind.title}[/bold red], {verdict.counts[kind]} ×: {kind.definition}", highlight=False
        )
        console.print(f"  for example: {escape(verdict.examples[kind][0].message)}", highlight=False)
    for reason in verdict.unchecked:
        console.print(f"[bold red]not checked[/bold red]: {escape(reason)}", highlight=False)
    console.print(conclusion(verdict), style="bold green" if verdict.passed else "bold red", highlight=False)


def where(run: Run) -> str:
    """Return the addresses of the cluster."""
    return f"{run.cluster} and {run.pulsar}" if run.pulsar else run.cluster


def conclusion(verdict: Verdict) -> str:
    """Return the last line."""
    if verdict.anomalies:
        total = sum(verdict.counts[kind] for kind in verdict.anomalies)
        kinds = "kind" if len(verdict.anomalies) == 1 else "kinds"
        return f"{total} anomalies of {len(verdict.anomalies)} {kinds}"
    return "no anomaly found" if verdict.passed else "no anomaly found, but not everything could be checked"


def _operations(verdict: Verdict) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("operations")
    for outcome in Outcome:
        table.add_column(outcome.value, justify="right")
    for kind in dict.fromkeys(kind for kind, _ in verdict.operations):
        table.add_row(kind, *(str(verdict.operations.get((kind, outcome.value), 0)) for outcome in Outcome))
    return table


def _numbers(title: str, numbers: dict[str, int]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(title)
    table.add_column("", justify="right")
    for name, number in numbers.items():
        table.add_row(name, str(number))
    return table
