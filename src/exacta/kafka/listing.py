"""An answer that lists all things of a kind is made in steps, since there may be a hundred thousand of them.

What comes into being meanwhile may be left out, and what goes is left out: the answer is true of each thing at its own
moment.
"""

from collections.abc import Callable, Collection
from typing import TypeVar

from exacta.front.broker import Broker
from exacta.front.turns import Steps
from exacta.kafka.context import RequestContext
from exacta.ports.log import ViewOf

N = TypeVar("N")
X = TypeVar("X")
Y = TypeVar("Y")

MANY = 500
"""The answer about more than these is encoded on a thread."""


def describe_all(
    broker: Broker,
    context: RequestContext,
    known: Collection[N],
    query: ViewOf[N, X | None],
    tell: Callable[[N, X], Y | None],
    done: Callable[[list[Y]], None],
) -> None:
    """Describe all things that have one of these names, in their order, and call back when the answer is durable.

    `tell` says what the query has found of one of them; None: it is not wanted. One thing is described in one step.
    """

    def steps() -> Steps:
        view = broker.engine.view
        told: list[Y] = []
        for name in known:
            found = view(lambda state, now_ms, name=name: query(state, now_ms, name))  # type: ignore[misc]
            if found is not None and (each := tell(name, found)) is not None:
                told.append(each)
            yield None
        broker.when_durable(context, lambda: done(told))

    context.is_long = len(known) > MANY
    context.in_steps(steps())
