"""Gather what lies around an anomaly: operations of the processes and partitions involved, near it in time.

The module is pure. It owns the choice of what is shown. The history is read twice more for all anomalies together: once
to find their times, and once to take the operations around them. So memory depends on what is shown, and not on the
length of the run.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from exacta.verify.analysis.anomalies import Anomaly
from exacta.verify.history import Begin, CommitAsked, End, Fault, Init, Op, Poll, Watermarks

_AROUND_US = 1_500_000
_MOST = 60


class Bar(Struct):
    """Something that took time, in one lane of a timeline."""

    lane: str
    start_us: int
    end_us: int
    kind: str
    """The look of the bar, as its class in the page."""
    label: str
    details: str
    involved: bool = False


class Context(Struct):
    """One anomaly with what lies around it."""

    anomaly: Anomaly
    first_us: int = 0
    last_us: int = 0
    bars: list[Bar] = []
    cut: bool = False
    """There was more than is shown."""


class _Span(Struct):
    begin: Begin
    asked_us: int | None = None
    end: End | None = None


def contexts(anomalies: Sequence[Anomaly], history: Callable[[], Iterable[Op]]) -> list[Context]:
    """Return the surroundings of each anomaly."""
    found = _windows(anomalies, history())
    spans: dict[str, _Span] = {}
    bars: list[list[Bar]] = [[] for _ in found]
    for op in history():
        match op:
            case Begin():
                if any(_concerns(context, op) for context in found):
                    spans[op.transaction] = _Span(op)
            case CommitAsked() if op.transaction in spans:
                spans[op.transaction].asked_us = op.at_us
            case End() if op.transaction in spans:
                spans[op.transaction].end = op
            case Init() | Poll() | Fault() | Watermarks():
                for context, own in zip(found, bars, strict=True):
                    bar = _bar(context, op)
                    if bar is not None:
                        own.append(bar)
            case _:
                pass
    for context, own in zip(found, bars, strict=True):
        own += [_bar_of_span(span) for span in spans.values() if _concerns(context, span.begin)]
        middle_us = context.anomaly.at_us
        named = context.anomaly.transactions
        own.sort(key=lambda bar: (bar.label not in named, not bar.involved, abs(bar.start_us - middle_us)))
        context.cut = len(own) > _MOST
        context.bars = sorted(own[:_MOST], key=lambda bar: bar.start_us)
    return found


def _windows(anomalies: Sequence[Anomaly], history: Iterable[Op]) -> list[Context]:
    """Return when each anomaly was: its transactions, and some time around them."""
    named = {name for anomaly in anomalies for name in anomaly.transactions}
    times: dict[str, list[int]] = {}
    for op in history:
        if isinstance(op, Begin | End) and op.transaction in named:
            times.setdefault(op.transaction, []).append(op.at_us)
    found = []
    for anomaly in anomalies:
        own = [at_us for name in anomaly.transactions for at_us in times.get(name, [])] or [anomaly.at_us]
        found.append(Context(anomaly, max(0, min(own) - _AROUND_US), max(own) + _AROUND_US))
    return found


def _concerns(context: Context, begin: Begin) -> bool:
    anomaly = context.anomaly
    if begin.transaction in anomaly.transactions:
        return True
    if not context.first_us <= begin.at_us <= context.last_us:
        return False
    same_place = any((topic, partition) in anomaly.partitions for topic, partition, _ in begin.records)
    return begin.process in anomaly.processes or same_place


def _bar_of_span(span: _Span) -> Bar:
    begin, end = span.begin, span.end
    if end is None:
        kind = "unknown" if span.asked_us is not None else "aborted"
        label = "killed" if span.asked_us is None else "killed while it committed"
    else:
        kind = {"ok": "committed" if end.committing else "aborted"}.get(end.outcome.value, end.outcome.value)
        label = f"{'commit' if end.committing else 'abort'}: {end.outcome.value} {end.error}".rstrip()
    offsets = end.offsets if end is not None else [None] * len(begin.records)
    records = [
        f"{topic}-{partition}{'' if offset is None else f'@{offset}'}: {value}"
        for (topic, partition, value), offset in zip(begin.records, offsets, strict=True)
    ]
    asked = "" if span.asked_us is None else f"; commit asked for at {span.asked_us / 1e6:.3f} s"
    details = f"{begin.producer}, {label}{asked}\n" + "\n".join(records)
    end_us = end.at_us if end is not None else max(begin.at_us, span.asked_us or 0)
    return Bar(begin.process, begin.at_us, end_us, kind, begin.transaction, details)


def _bar(context: Context, op: Init | Poll | Fault | Watermarks) -> Bar | None:
    anomaly = context.anomaly
    shows = _shows(anomaly, op)
    if not shows and (op.end_us < context.first_us or op.start_us > context.last_us):
        return None
    match op:
        case Init():
            if op.process not in anomaly.processes:
                return None
            label = f"takes {op.transactional_id}"
            return Bar(op.process, op.start_us, op.end_us, f"init {op.outcome.value}", label, f"{label} {op.error}")
        case Fault():
            return Bar("faults", op.start_us, op.end_us, "fault", op.kind, f"{op.kind}: {op.target} {op.error}")
        case Poll():
            if (op.topic, op.partition) not in anomaly.partitions or not op.records:
                return None
            first, last = op.records[0][0], op.records[-1][0]
            label = f"{op.topic}-{op.partition}@{first}…{last}"
            details = label + "\n" + "\n".join(f"@{offset}: {value}" for offset, value in op.records[:_MOST])
            return Bar(op.process, op.start_us, op.end_us, "poll", label, details, involved=shows)
        case Watermarks():
            marks = [
                f"{topic}-{partition}: last stable {stable}, end {high}"
                for topic, partition, stable, high in op.partitions
                if (topic, partition) in anomaly.partitions
            ]
            return Bar("offsets listed", op.start_us, op.end_us, "marks", "; ".join(marks), "\n".join(marks))


def _shows(anomaly: Anomaly, op: Init | Poll | Fault | Watermarks) -> bool:
    """Say whether a poll got a record of the transactions in question."""
    if not isinstance(op, Poll) or (op.topic, op.partition) not in anomaly.partitions:
        return False
    return any(value.rpartition("/")[0] in anomaly.transactions for _, value in op.records)
