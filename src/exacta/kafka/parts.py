"""A request that names much is served in parts, each in a step of its own (`front/turns.py`).

Owns how a request is divided and how the answers to its parts become one. A handler says by `Parts` that its elements
are independent: each is answered as if it had been asked for alone, so that no answer owes anything to one state of the
log. What a request names twice stays in one part, since handlers refuse or leave out the second one.

A part is decided in its step; its answer may come later, when what it rests on is durable.
"""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from exacta.front.turns import Steps, Until
from exacta.kafka.needs import Each
from exacta.protocol.kafka.schema import Message

Serve = Callable[[Message, Callable[[Message | None], None]], None]


FURTHER_NAMES = ("topic_id", "resource_type", "group_instance_id")
"""The fields that name an element beside the one that `Parts.name` says, where it has them."""

MOST_IN_FLIGHT = 4
"""The most parts of a request that wait for their answers at a time."""


class Parts(Struct, frozen=True):
    """The array of a request that may be divided, and the array of its answers."""

    elements: str
    answers: str
    name: str = "name"
    """The element's field that names it, empty where the element is the name."""
    inner: str = ""
    """The array in each element that may be divided as well; the answers have theirs in `inner_answers`."""
    inner_answers: str = ""
    size: str = ""
    """The element's field whose number says how much work it is: a tenth of an element for each."""
    most: int = 500
    """The most elements, inner ones included, that are served in one step."""
    most_in_all: int = 2**31
    """A request with more elements is refused by POLICY_VIOLATION."""


def divided_by(need: Each, **more: Any) -> Parts:
    """Return the parts by the elements whose rights are asked for one by one; `more` are further fields."""
    return Parts(need.elements, need.answers, need.name, **more)


def parts_of(ways: tuple[Parts, ...], request: Any, *, is_long: bool) -> Parts | None:
    """Return how a request is divided; None: it is served in one step.

    `is_long` says that inner elements are many, which are not counted here.
    """
    for parts in ways:
        elements = getattr(request, parts.elements) or ()
        count = sum(_cost(parts, each) for each in elements) if parts.size else len(elements)
        if count > parts.most or (count and is_long):
            return parts
    return None


def is_too_much(parts: Parts, request: Any) -> bool:
    """Return whether a request is refused for its length."""
    return len(getattr(request, parts.elements)) > parts.most_in_all


def divided(parts: Parts, request: Any) -> Iterator[Message]:
    """Return the parts of a request, at least one."""
    named: dict[Any, list[Any]] = {}
    for element in getattr(request, parts.elements) or ():
        named.setdefault(_key(parts, element), []).append(element)
    part: list[Any] = []
    weight = 0
    for same in named.values():
        for elements, cost in _pieces(parts, same):
            if part and weight + cost > parts.most:
                yield replace(request, **{parts.elements: part})
                part, weight = [], 0
            part += elements
            weight += cost
    yield replace(request, **{parts.elements: part}) if part else request


def _key(parts: Parts, element: Any) -> Any:
    if not parts.name:
        return element
    # A topic may be named by its id, a configured thing by its kind and name, and a member by its instance id.
    return (getattr(element, parts.name), *(getattr(element, each, None) for each in FURTHER_NAMES))


def _cost(parts: Parts, element: Any) -> int:
    return 1 + (max(getattr(element, parts.size), 0) // 10 if parts.size else 0)


def _pieces(parts: Parts, same: list[Any]) -> Iterator[tuple[list[Any], int]]:
    """Divide the elements of one name; return pieces that stay in one part, with their costs."""
    if not parts.inner:
        yield same, sum(_cost(parts, each) for each in same)
        return
    inner = [each for element in same for each in getattr(element, parts.inner) or ()]
    if len(same) > 1 or len(inner) <= parts.most:
        yield same, len(same) + len(inner)
        return
    for begin in range(0, len(inner), parts.most):
        piece = inner[begin : begin + parts.most]
        yield [replace(same[0], **{parts.inner: piece})], len(piece)


def joined(parts: Parts, answers: list[Message]) -> Message:
    """Return the answer to the whole request."""
    first, *others = answers
    all_of_them: list[Any] = getattr(first, parts.answers)
    for other in others:
        more = getattr(other, parts.answers)
        if parts.inner and more and all_of_them and _same(parts, all_of_them[-1], more[0]):
            getattr(all_of_them[-1], parts.inner_answers).extend(getattr(more[0], parts.inner_answers))
            more = more[1:]
        all_of_them.extend(more)
    return first


def _same(parts: Parts, one: Any, other: Any) -> bool:
    return bool(_key(parts, one) == _key(parts, other))


def in_parts(parts: Parts, request: Message, serve: Serve, reply: Callable[[Message | None], None]) -> Steps:
    """Serve a request part by part, with a pause after each; reply when all parts are answered."""
    found = yield lambda: list(divided(parts, request))
    if isinstance(found, Exception):
        raise found
    answers: list[Message | None] = [None] * len(found)
    waiting: deque[Until] = deque()

    def answered(number: int, done: Until, answer: Message | None) -> None:
        answers[number] = answer
        done.set()

    for number, part in enumerate(found):
        done = Until()
        waiting.append(done)
        serve(part, partial(answered, number, done))
        # The answers that one sync releases stay few, too.
        yield waiting.popleft() if len(waiting) == MOST_IN_FLIGHT else None
    while waiting:
        yield waiting.popleft()
    told = [each for each in answers if each is not None]
    reply(joined(parts, told) if told else None)
