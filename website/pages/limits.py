"""The tables of the state with their bounds, as the page of limits has them.

`make docs` writes what stands between two marks of `docs/reference/limits.md`. Its content stands in
`exacta.core.state.tables` and in `exacta.core.values.limits`.
"""

from exacta.config.options import options
from exacta.core.state.tables import BOUNDS, Bound
from exacta.core.values.limits import Limits

BEGIN = "<!-- made from code by `make docs`: begin -->"
END = "<!-- made from code by `make docs`: end -->"
UNBOUNDED = 2**31 - 1
_HEAD = "| table | bound | forgets | beyond it |\n|---|---|---|---|"


def reference() -> str:
    """Return the rows of all tables, as Markdown."""
    return "\n".join([_HEAD, *map(_row, BOUNDS)])


def _row(bound: Bound) -> str:
    bounds = [] if bound.table is None else [_said(bound.table.value)]
    bounds += [_said(name) for name in bound.counts]
    forgets = bound.forgets or "nothing before its time"
    beyond = bound.beyond if bound.beyond.endswith(".") else f"{bound.beyond}."
    return f"| {bound.name} | {'<br>'.join(bounds)} | {forgets} | {beyond} |"


def _said(name: str) -> str:
    """Return a limit by its name and its default; an option of the broker that sets it has dots in its name."""
    value: int = getattr(Limits(), name)
    key = name.replace("_", ".")
    shown = f"`{key}`" if key in _OPTIONS else f"{name.replace('_', ' ')}"
    if value == UNBOUNDED:
        return f"{shown}: none"
    return f"{shown}: {_size(value) if '_bytes' in name else _time(value) if name.endswith('_ms') else f'{value:,}'}"


_OPTIONS = frozenset(options())


def _size(value: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size and value % size == 0:
            return f"{value // size:,} {unit}"
    return f"{value:,} bytes"


def _time(value: int) -> str:
    return f"{value // 60_000} minutes" if value % 60_000 == 0 else f"{value // 1000} seconds"


def with_reference(page: str) -> str:
    """Return the page with the tables as they are in the code."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{reference()}\n\n{END}{tail}"
