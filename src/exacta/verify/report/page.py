"""The report as one HTML file that needs nothing else: what was found, each with a timeline of what lay around it."""

from collections.abc import Callable, Iterable
from html import escape

from exacta.verify.analysis.anomalies import Anomaly, Kind
from exacta.verify.analysis.verdict import Verdict
from exacta.verify.history import Op, Outcome
from exacta.verify.report.context import Bar, Context, contexts
from exacta.verify.report.terminal import conclusion, where

_SHOWN_OF_A_KIND = 5
_WIDTH, _LANE, _LEFT = 1000, 26, 190
_LEAST_BAR = 3.0
_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;max-width:1240px;margin:2em auto;padding:0 1em;color:#1d2330}
h1{font-size:1.5em} h2{font-size:1.2em;margin-top:2em} .good{color:#17703c} .bad{color:#b3261e}
table{border-collapse:collapse;margin:.6em 0} td,th{padding:.15em .8em .15em 0;text-align:left;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums} .note{color:#5b6475} code,pre{font-size:.86em}
svg{width:100%;background:#f7f8fa;border:1px solid #dfe3ea} svg text{font:11px system-ui,sans-serif;fill:#1d2330}
.committed{fill:#5aa873}.aborted{fill:#aab2c0}.unknown{fill:#e3a83b}.fail{fill:#aab2c0}.init{fill:#7d6bd1}
.poll{fill:#4f8fd0}.fault{fill:#b3261e;opacity:.55}.marks{fill:#5b6475}.involved{stroke:#b3261e;stroke-width:2}
details{margin:.4em 0} pre{white-space:pre-wrap;background:#f7f8fa;padding:.6em;margin:.2em 0}
"""


def render(verdict: Verdict, history: Callable[[], Iterable[Op]]) -> str:
    """Return the page; `history` is read twice more where there is something to show."""
    run = verdict.run
    kinds = [*verdict.anomalies, *verdict.information]
    shown = [anomaly for kind in kinds for anomaly in verdict.examples[kind][:_SHOWN_OF_A_KIND]]
    around = {id(each.anomaly): each for each in contexts(shown, history)} if shown else {}
    options = "; ".join(f"{name}: {value}" for name, value in run.options.items() if value)
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        f"<title>exacta verify: {escape(conclusion(verdict))}</title><style>{_STYLE}</style></head><body>",
        f"<h1>exacta verify: <span class='{'good' if verdict.passed else 'bad'}'>{escape(conclusion(verdict))}</span>",
        f"</h1><p>Run {escape(run.run)} on {escape(where(run))}, {escape(run.started)}, seed {run.seed}; workloads ",
        f"{', '.join(run.workloads)}; {escape(options)}. Exacta {escape(run.version)}.</p>",
        *(f"<p class='bad'>Not checked: {escape(reason)}.</p>" for reason in verdict.unchecked),
        *_tables(verdict),
    ]
    for kind in kinds:
        parts += _section(verdict, kind, [around[id(each)] for each in verdict.examples[kind][:_SHOWN_OF_A_KIND]])
    parts += _definitions(verdict)
    return "\n".join([*parts, "</body></html>\n"])


def _tables(verdict: Verdict) -> Iterable[str]:
    yield "<h2>What was done</h2><table><tr><th>operations</th>"
    yield "".join(f"<th>{outcome.value}</th>" for outcome in Outcome) + "</tr>"
    for kind in dict.fromkeys(kind for kind, _ in verdict.operations):
        cells = (f"<td class='n'>{verdict.operations.get((kind, outcome.value), 0)}</td>" for outcome in Outcome)
        yield f"<tr><td>{escape(kind)}</td>{''.join(cells)}</tr>"
    yield "</table>"
    for title, numbers in (("faults", verdict.faults), ("seen", verdict.figures)):
        rows = (f"<tr><td>{escape(name)}</td><td class='n'>{number}</td></tr>" for name, number in numbers.items())
        yield f"<table><tr><th>{title}</th><th></th></tr>{''.join(rows)}</table>"


def _section(verdict: Verdict, kind: Kind, shown: list[Context]) -> Iterable[str]:
    allowed = " <span class='note'>(allowed: information)</span>" if verdict.allowed(kind) else ""
    yield f"<h2 id='{kind.title}'>{kind.title}, {verdict.counts[kind]} ×{allowed}</h2><p>{escape(kind.definition)}</p>"
    for context in shown:
        yield f"<p><b>{escape(context.anomaly.message)}</b></p>"
        yield _timeline(context)
        yield _listing(context)
    if verdict.counts[kind] > len(shown):
        yield f"<p class='note'>{verdict.counts[kind] - len(shown)} more are not shown.</p>"


def _timeline(context: Context) -> str:
    """Return a drawing with a lane for each process; a bar that is pointed at says what it was."""
    lanes = list(dict.fromkeys(bar.lane for bar in sorted(context.bars, key=lambda bar: bar.lane)))
    height = _LANE * (len(lanes) + 1)
    first_us = min([context.first_us, *(bar.start_us for bar in context.bars if bar.involved)])
    last_us = max([context.last_us, *(bar.end_us for bar in context.bars if bar.involved), first_us + 1])
    scale = (_WIDTH - _LEFT) / (last_us - first_us)
    parts = [f"<svg viewBox='0 0 {_WIDTH} {height}' role='img'>"]
    for number, lane in enumerate(lanes):
        y = number * _LANE
        parts.append(f"<text x='4' y='{y + 17}'>{escape(lane)}</text>")
        parts.append(f"<line x1='{_LEFT}' x2='{_WIDTH}' y1='{y + _LANE}' y2='{y + _LANE}' stroke='#dfe3ea'/>")
    for bar in context.bars:
        start_us, end_us = max(bar.start_us, first_us), min(max(bar.end_us, bar.start_us), last_us)
        x, width = _LEFT + (start_us - first_us) * scale, max(_LEAST_BAR, (end_us - start_us) * scale)
        fault = bar.kind == "fault"
        y, tall = (0, height - _LANE) if fault else (lanes.index(bar.lane) * _LANE + 4, _LANE - 8)
        involved = " involved" if _involved(context.anomaly, bar) else ""
        parts.append(
            f"<rect class='{bar.kind}{involved}' x='{x:.1f}' y='{y}' width='{width:.1f}' height='{tall}'>"
            f"<title>{escape(bar.label)}\n{escape(bar.details)}</title></rect>"
        )
    for step in range(5):
        at_us = first_us + (last_us - first_us) * step // 4
        x = _LEFT + (_WIDTH - _LEFT - 50) * step / 4
        parts.append(f"<text x='{x:.0f}' y='{height - 8}'>{at_us / 1e6:.3f} s</text>")
    return "".join([*parts, "</svg>"])


def _listing(context: Context) -> str:
    lines = [
        f"{bar.start_us / 1e6:>10.3f} s {'*' if _involved(context.anomaly, bar) else ' '} {bar.lane}: {bar.label}\n"
        + "\n".join(f"{'':14}{line}" for line in bar.details.splitlines())
        for bar in context.bars
    ]
    cut = " (the nearest ones)" if context.cut else ""
    summary = f"<summary>{len(lines)} operations around it{cut}</summary>"
    return f"<details>{summary}<pre>{escape(chr(10).join(lines))}</pre></details>"


def _involved(anomaly: Anomaly, bar: Bar) -> bool:
    return bar.involved or bar.label in anomaly.transactions


def _definitions(verdict: Verdict) -> Iterable[str]:
    yield "<h2>What was looked for</h2><table>"
    for kind in Kind:
        number = verdict.counts.get(kind, 0)
        allowed = " (information)" if verdict.allowed(kind) else ""
        yield f"<tr><td>{kind.title}{allowed}</td><td class='n'>{number}</td><td>{escape(kind.definition)}</td></tr>"
    yield "</table>"
