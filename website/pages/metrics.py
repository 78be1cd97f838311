"""The reference page of the metrics, made from their table."""

from collections.abc import Iterator

from exacta.histogram import ENTRIES, SECONDS, Histogram
from exacta.metrics.families import FAMILIES, Family

_HEAD = """# Metrics

`exacta serve --web-listen 127.0.0.1:8080` serves these metrics at `/metrics`, in the text format of Prometheus, or of
OpenMetrics where the scraper asks for it. They need the [extra](../install.md#extras) `web`.
[Monitoring](../how-to/monitoring.md) says what to look at, and brings a dashboard and alert rules.

A counter begins at 0 with each start of the broker. A histogram `…_seconds` has the series `…_seconds_bucket`, with
bounds that are powers of two from {shortest:g} to {longest:g} seconds, `…_seconds_sum` and `…_seconds_count`; the
histogram of events has bounds from {fewest:g} to {most:g}.

In one metric at most `web.metrics.max.series` topics, groups or subscriptions (100, if nothing else is set) have series
of their own. Of topics these are the busiest ones, of groups and subscriptions those that lag most. All others are
summed in one series, whose label is `(others)`; of ages it has the largest.
"""

_TAIL = """
The client library adds what every process has, as far as the system tells it: `process_cpu_seconds_total`,
`process_resident_memory_bytes`, `process_virtual_memory_bytes`, `process_start_time_seconds`, `process_open_fds`,
`process_max_fds`.
"""


def page() -> str:
    """Return the page as Markdown."""
    times, entries = Histogram(SECONDS).bounds, Histogram(ENTRIES).bounds
    head = _HEAD.format(shortest=times[0], longest=times[-1], fewest=entries[0], most=entries[-1])
    return "\n".join([head, "| metric | meaning | kind | labels |", "|---|---|---|---|", *_rows(), _TAIL.rstrip(), ""])


def _rows() -> Iterator[str]:
    return (_row(family) for family in FAMILIES.values())


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    return f"| `{family.name}` | {family.help} | {family.kind.value} | {labels} |"
