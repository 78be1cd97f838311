"""An answer that lists all things of a kind is made in steps, since there may be a hundred thousand of them.

What comes into being meanwhile may be left out, and what goes is left out: the answer is true of each thing at its own
moment.
"""

from collections.abc import Callable, Collection
from typing import TypeVar

from exacta.core.state.state import State
from exacta.front.broker import Broker
from exacta.front.turns import Steps
from exacta.kafka.context import RequestContext

N = TypeVar("N")
X = TypeVar("X")

MANY = 500
"""The answer about more than these is encoded on a thread."""


def describe_all(
    broker: Broker,
    context: RequestContext,
    names: Callable[[State], Collection[N]],
    describe: Callable[[State, int, N], X | None],
    done: Callable[[list[X]], None],
) -> None:
    """Describe all things that have one of these names, in their order, and call back when the answer is durable.

    A name whose thing is gone, or not wanted, is described as None. One thing is described in one step.
    """
    view = broker.engine.view
    known = view(lambda state, now_ms: list(names(state)))

    def steps() -> Steps:
        found: list[X] = []
        for name in known:
            each = view(lambda state, now_ms, name=name: describe(state, now_ms, name))  # type: ignore[misc]
            if each is not None:
                found.append(each)
            yield None
        broker.when_durable(context, lambda: done(found))

    context.is_long = len(known) > MANY
    context.in_steps(steps())
