"""A request that names much is served in parts, each in a step of its own (`front/turns.py`).

Owns how a request is divided and how the answers to its parts become one. A handler says by `Parts` that its elements
are independent: each is answered as if it had been asked for alone, so that no answer owes anything to one state of the
log. `Repeats` says what becomes of elements that a request names again: they may be as many as all others.

A part is decided in its step; its answer may come later, when what it rests on is durable.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from exacta.front.turns import Steps, Until
from exacta.kafka.needs import Each
from exacta.kafka.request_size import first_time
from exacta.protocol.kafka.schema import Message

Serve = Callable[[Message, Callable[[Message | None], None]], None]


FURTHER_NAMES = ("topic_id", "resource_type", "group_instance_id")
"""The fields that name an element beside the one that `Parts.name` says, where it has them."""

MOST_IN_FLIGHT = 4
"""The most parts of a request that wait for their answers at a time."""


class Repeats(Enum):
    """The ways of elements, and of inner ones, that a request names again."""

    SERVED = "served"
    """Each is served like the first one, in the order of the request."""
    LEFT_OUT = "left out"
    """The handler leaves them out (`first_time`), and so do the parts."""
    REFUSED = "refused"
    """The handler refuses all elements of one name, so that no part has a single one of them."""


class Part(NamedTuple):
    """A part of a request; `goes_on` says that it begins within the last element of the part before."""

    request: Any
    goes_on: bool


class _Piece(NamedTuple):
    """Elements that stay in one part."""

    elements: list[Any]
    cost: int
    goes_on: bool = False


class Parts(Struct, frozen=True):
    """The array of a request that may be divided, and the array of its answers."""

    elements: str
    answers: str
    name: str = "name"
    """The element's field that names it, empty where the element is the name."""
    inner: str = ""
    """The array in each element that may be divided as well; the answers have theirs in `inner_answers`."""
    inner_answers: str = ""
    repeats: Repeats = Repeats.SERVED
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


def divided(parts: Parts, request: Any) -> Iterator[Part]:
    """Return the parts of a request, at least one."""
    part: list[Any] = []
    weight, goes_on = 0, False
    for piece in _pieces(parts, getattr(request, parts.elements) or ()):
        if part and weight + piece.cost > parts.most:
            yield Part(replace(request, **{parts.elements: part}), goes_on)
            part, weight = [], 0
        if not part:
            goes_on = piece.goes_on
        part += piece.elements
        weight += piece.cost
    yield Part(replace(request, **{parts.elements: part}) if part else request, goes_on)


def _key(parts: Parts, element: Any) -> Any:
    if not parts.name:
        return element
    # A topic may be named by its id, a configured thing by its kind and name, and a member by its instance id.
    return (getattr(element, parts.name), *(getattr(element, each, None) for each in FURTHER_NAMES))


def _cost(parts: Parts, element: Any) -> int:
    return 1 + (max(getattr(element, parts.size), 0) // 10 if parts.size else 0)


def _pieces(parts: Parts, elements: Sequence[Any]) -> Iterator[_Piece]:
    if parts.repeats is Repeats.REFUSED:
        yield from _with_repeats(parts, elements)
        return
    is_wanted = first_time() if parts.repeats is Repeats.LEFT_OUT else lambda thing: True
    for element in elements:
        key = _key(parts, element)
        if parts.inner:
            inner = [each for each in getattr(element, parts.inner) or () if is_wanted((key, each))]
            yield from _inner_pieces(parts, element, inner)
        elif is_wanted(key):
            yield _Piece([element], _cost(parts, element))


def _inner_pieces(parts: Parts, element: Any, inner: list[Any]) -> Iterator[_Piece]:
    """Divide an element that has these inner ones; each piece but the last one fills a part."""
    for begin in range(0, len(inner) or 1, parts.most):
        piece = inner[begin : begin + parts.most]
        yield _Piece([replace(element, **{parts.inner: piece})], len(piece) or 1, begin > 0)


def _with_repeats(parts: Parts, elements: Sequence[Any]) -> Iterator[_Piece]:
    """Return the elements of each name together, or as many of them as fill a part, and one more at the end."""
    named: dict[Any, list[Any]] = {}
    for element in elements:
        named.setdefault(_key(parts, element), []).append(element)
    for same in named.values():
        begin = 0
        while begin < len(same):
            end = begin + parts.most if len(same) - begin > parts.most + 1 else len(same)
            piece = same[begin:end]
            yield _Piece(piece, sum(_cost(parts, each) for each in piece))
            begin = end


def joined(parts: Parts, answers: list[tuple[Message, bool]]) -> Message:
    """Return the answer to the whole request. Each answer to a part has the part's `goes_on`."""
    first = answers[0][0]
    all_of_them: list[Any] = getattr(first, parts.answers)
    for other, goes_on in answers[1:]:
        if getattr(other, "error_code", 0):  # what all parts name is gone since the first one
            return other
        more = getattr(other, parts.answers)
        if goes_on and more and all_of_them:
            getattr(all_of_them[-1], parts.inner_answers).extend(getattr(more[0], parts.inner_answers))
            more = more[1:]
        all_of_them.extend(more)
    return first


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
        serve(part.request, partial(answered, number, done))
        # The answers that one sync releases stay few, too.
        yield waiting.popleft() if len(waiting) == MOST_IN_FLIGHT else None
    while waiting:
        yield waiting.popleft()
    told = [(each, part.goes_on) for part, each in zip(found, answers, strict=True) if each is not None]
    reply(joined(parts, told) if told else None)
