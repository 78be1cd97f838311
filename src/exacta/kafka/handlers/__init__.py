"""The APIs that are served, one module each: the directory is the protocol coverage.

A module is named like the module of its messages. It ends with `HANDLER`, the `Handler` that says which versions it
serves, what a request needs of its client (`kafka/needs.py`) and what handles it:
`handle(broker, request, context, reply)`; nothing awaits.

An API is added in three places: one line in `ApiKey` (`protocol/kafka/apis.py`), the module of its messages
(`protocol/kafka/messages/`), and the module of its handler here. All other lists are made from these, except that one
of Kafka's APIs leaves the page's list of those that are not served (`UNSERVED` in `website/pages/protocol.py`).
"""

import importlib
import pkgutil
from collections.abc import Iterator

from exacta.kafka.handler import Handler


def _handlers() -> Iterator[Handler]:
    for found in pkgutil.iter_modules(__path__, f"{__name__}."):
        handler: Handler = importlib.import_module(found.name).HANDLER
        yield handler


HANDLERS: dict[int, Handler] = {int(handler.key): handler for handler in _handlers()}
