"""The points at which something can happen to the program: before and after each of its steps, numbered as it goes.

A step is a request or an answer on a connection to the broker, or a call to the database. What the program did before a
point is done; what comes after it is not begun. A hook is called at each point with its number and its name.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from exacta.client.connection import Connection
from exacta.databases.postgres import Postgres
from exacta.databases.sqlite import Sqlite
from exacta.databases.transaction import Transaction

Hook = Callable[[int, str], None]

_OF_DATABASES = ("open", "begin", "ask", "change", "commit", "rollback", "discard", "close", "create_table")
STEPS: list[tuple[type[Any], str]] = [
    *((kind, name) for kind in (Sqlite, Postgres) for name in _OF_DATABASES),
    (Connection, "send"),
    (Connection, "receive"),
    (Transaction, "execute"),
]


@contextmanager
def hooked(hook: Hook) -> Iterator[None]:
    """Call the hook at each point meanwhile."""
    at = 0

    def point(name: str) -> None:
        nonlocal at
        at += 1
        hook(at, name)

    def wrapped(kind: type[Any], name: str) -> Callable[..., Any]:
        step = getattr(kind, name)

        def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
            what = f"{kind.__name__}.{name}"
            if name == "send":
                what += f" of {type(arguments[0]).__name__}"
            point(f"before {what}")
            result = step(self, *arguments, **keywords)
            point(f"after {what}")
            return result

        return call

    patches = [patch.object(kind, name, wrapped(kind, name)) for kind, name in STEPS]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()
