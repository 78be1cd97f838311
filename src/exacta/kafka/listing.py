"""An answer that lists all things of a kind is made in steps, since there may be a hundred thousand of them.

What comes into being meanwhile may be left out, and what goes is left out: the answer is true of each thing at its own
moment.
"""

from collections.abc import Callable, Collection
from typing import TypeVar

from exacta.front.broker import Broker
from exacta.front.turns import Steps
from exacta.kafka.context import RequestContext
from exacta.ports.log import View

N = TypeVar("N")
X = TypeVar("X")
Y = TypeVar("Y")

MANY = 500
"""The answer about more than these is encoded on a thread."""


def describe_all(
    broker: Broker,
    context: RequestContext,
    known: Collection[N],
    describe: Callable[[N], View[X | None]],
    tell: Callable[[N, X], Y | None],
    done: Callable[[list[Y]], None],
) -> None:
    """Describe all things that have one of these names, in their order, and call back when the answer is durable.

    `describe` returns the query about one of them, and `tell` says what was found; None: it is gone, or not wanted. One
    thing is described in one step.
    """

    def steps() -> Steps:
        told: list[Y] = []
        for name in known:
            found = broker.engine.view(describe(name))
            if found is not None and (each := tell(name, found)) is not None:
                told.append(each)
            yield None
        broker.when_durable(context, lambda: done(told))

    context.is_long = len(known) > MANY
    context.in_steps(steps())
