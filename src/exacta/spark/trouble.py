"""What goes wrong between a reader and a cluster, as one sentence with its remedy.

Owns the sentences for what the client raises. That Spark shows just them is the work of `explained.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from exacta.client.errors import ClientError, ConnectionLost, DeadlineExceeded
from exacta.client.routing import UnknownTopic
from exacta.spark.explained import only_the_sentence


class SourceError(RuntimeError):
    """Reading is not possible; the message is one sentence for the user."""


_Method = TypeVar("_Method", bound=Callable[..., Any])


@contextmanager
def sentences(bootstrap: str) -> Iterator[None]:
    """Raise `SourceError` for what the client raises."""
    try:
        yield
    except ClientError as error:
        only_the_sentence()
        raise SourceError(sentence_of(error, bootstrap)) from None


def in_a_sentence(method: _Method) -> _Method:
    """Make a reader's method raise `SourceError` for what the client raises."""

    @wraps(method)
    def wrapped(self: Any, *arguments: Any) -> Any:
        with sentences(self._options.bootstrap):
            return method(self, *arguments)

    return wrapped  # type: ignore[return-value]


def sentence_of(error: ClientError, bootstrap: str) -> str:
    """Return what is wrong and what may be done about it."""
    if isinstance(error, UnknownTopic):
        return f"{error}: create it, or correct option 'subscribe' or 'assign'"
    if isinstance(error, DeadlineExceeded) and isinstance(error.__cause__, ConnectionLost):
        return (
            f"no usable broker at {bootstrap}: {error}; check option 'kafka.bootstrap.servers', and that brokers run "
            "there"
        )
    return str(error)
