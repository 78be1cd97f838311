"""Say what went wrong between us and the cluster, as one sentence with its remedy.

This module owns the translation of the client's errors, and makes Spark show just the sentence. It does not own the
rules of the protocol: what they refuse is a sentence already (`errors.py`).

Spark hands an error of a Python worker on as its whole traceback, unless the environment of that worker says
`SPARK_HIDE_TRACEBACK`. The worker reads this variable when the error arrives, and ends with that error. So the variable
is set just then, and nobody else's traceback is hidden. An exception that is neither the client's error nor a refusal
of ours keeps its traceback.
"""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

from exacta.client.errors import ClientError, DeadlineExceeded, KafkaError, SecurityFailed, UnknownBootstrap
from exacta.client.routing import UnknownTopic
from exacta.protocol.kafka.errors import ErrorCode
from exacta.spark.options import OptionError
from exacta.spark.sink.checkpoint import CheckpointUnreadable
from exacta.spark.sink.decision import UnreadableDecision
from exacta.spark.sink.errors import RefusedWhilePickling, SinkError
from exacta.spark.source.planning import DataLost

logger = logging.getLogger("exacta.spark")


class ClusterError(RuntimeError):
    """The cluster cannot be reached, or refuses; the message is one sentence for the user."""


_SENTENCES = (SinkError, OptionError, DataLost, CheckpointUnreadable, UnreadableDecision)

_PREFIXED = {
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional ids",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "groups",
}
"""Kinds of resources of which a query has several, under names that all begin in the same way."""
_NOT_PERMITTED = frozenset({*_PREFIXED, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED})

_REMEDIES = {
    ErrorCode.MESSAGE_TOO_LARGE: (
        "a row, or a record batch (option 'kafka.batch.size'), is above the topic's 'max.message.bytes': lower the "
        "option, compress (option 'kafka.compression.type'), or raise the topic's limit"
    ),
    ErrorCode.INVALID_TOPIC_EXCEPTION: (
        "a topic's name has at most 249 characters, which are letters and digits of ASCII, '.', '_' and '-'"
    ),
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: (
        "another task wrote to the same partition in the same transaction; with option 'transaction.scope' batch only "
        "one may, see exacta.spark.one_task_per_partition(df, ...)"
    ),
}

_Method = TypeVar("_Method", bound=Callable[..., Any])


def in_worker() -> bool:
    """Return whether this process is one of Spark's Python workers: not the user's own."""
    return any(name.startswith("PYTHON_WORKER_FACTORY_") for name in os.environ)


def only_the_sentence() -> None:
    """Make Spark show, without its traceback, the error that this worker is about to end with; elsewhere do nothing."""
    if in_worker():
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"


@contextmanager
def refused_while_pickling() -> Iterator[None]:
    """Raise what `explained` raises so that Spark's serializer lets it through, without a "could not serialize" before.

    Spark shows the name of an error's class, too. It is the name of the refusal's class, as everywhere else.
    """
    try:
        yield
    except (*_SENTENCES, ClusterError) as error:
        kind = type(error)
        named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
        raise type(kind.__name__, (RefusedWhilePickling,), named)(str(error)) from None


def explaining(method: _Method) -> _Method:
    """Decorate a method that Spark calls, of something with `options`, so that its errors are explained."""

    @wraps(method)
    def told(self: Any, *arguments: Any, **named: Any) -> Any:
        with explained(self.options.bootstrap):
            return method(self, *arguments, **named)

    return cast(_Method, told)


@contextmanager
def explained(bootstrap: str | None = None, *, in_worker: bool = True) -> Iterator[None]:
    """Raise what the block, or the function decorated, raises as one sentence; in a worker, without a traceback.

    `bootstrap` names the cluster that the block talks to. Without it, only an error that is a sentence already is shown
    as one. `in_worker` says that Spark calls the block and the worker ends with its error. This does not hold if the
    user's own code calls it.
    """
    try:
        yield
    except _SENTENCES as error:
        logger.debug("refused", exc_info=True)
        if in_worker:
            only_the_sentence()
        raise error from None  # what led to it is in the log
    except ClientError as error:
        if bootstrap is None:
            raise
        logger.debug("explained", exc_info=True)
        if in_worker:
            only_the_sentence()
        raise ClusterError(sentence_for(error, bootstrap)) from None


def sentence_for(error: ClientError, bootstrap: str) -> str:
    """Return what an error of the client says to a user, with the remedy where we know one."""
    if isinstance(error, UnknownTopic):
        return f"topic '{error.topic}' does not exist on {bootstrap}: create it, or look at its name"
    cause = error.__cause__ if isinstance(error, DeadlineExceeded) else error
    if isinstance(cause, KafkaError):
        if cause.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return f"{cause.what} found none on {bootstrap}, and the cluster creates none on demand: create it first"
        if cause.code in _REMEDIES:
            return f"{bootstrap} refused {cause}: {_REMEDIES[ErrorCode(cause.code)]}"
        if cause.code in _NOT_PERMITTED:
            lacking = cause.detail or "a permission is missing"
            return f"{bootstrap} does not permit {cause.what}: {lacking}{_prefix_hint(cause)}"
    if isinstance(cause, SecurityFailed):
        return str(cause)
    if isinstance(cause, UnknownBootstrap):
        return f"{cause}: is 'kafka.bootstrap.servers' right?"
    if isinstance(error, DeadlineExceeded):
        return (
            f"the cluster at {bootstrap} did not answer as it should for {_seconds(error)} ({cause}): are its brokers "
            "up, can they be reached from the driver and from every executor, and is 'kafka.bootstrap.servers' right?"
        )
    return f"{bootstrap} refused {error}" if isinstance(error, KafkaError) else str(error)


def _prefix_hint(cause: KafkaError) -> str:
    is_its_own = not cause.what.startswith("acknowledging messages")  # subscriptions have names of the user's
    if cause.code not in _PREFIXED or not is_its_own:
        return ""
    return (
        f", and the same for all {_PREFIXED[ErrorCode(cause.code)]} of this query: they begin with its id, or with "
        "what option 'transactional.id.prefix' says"
    )


def _seconds(error: DeadlineExceeded) -> str:
    # "gave up after 120 s: ..."
    return str(error).removeprefix("gave up after ").partition(":")[0]
