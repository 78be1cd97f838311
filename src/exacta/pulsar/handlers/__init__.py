"""The commands that are served, one module each, named by the command's number: the directory is the coverage.

A module ends with `HANDLER`, the `Handler` that says what a command needs of its client (`NEEDS`, see
`pulsar/needs.py`), what handles it (`handle(broker, command, request)`; nothing awaits), and how it is refused. A
command that has no module is one that only brokers send, or that this broker has offered to no client. It ends the
connection.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from exacta.pulsar.context import Handler


def _handlers() -> Iterator[Handler[Any]]:
    for found in pkgutil.iter_modules(__path__, f"{__name__}."):
        handler: Handler[Any] = importlib.import_module(found.name).HANDLER
        yield handler


HANDLERS: dict[int, Handler[Any]] = {handler.type: handler for handler in _handlers()}
"""A command's handler, by the command's number, which says of what class the command is."""
