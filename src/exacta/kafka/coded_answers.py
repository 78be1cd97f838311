"""Answers that are an error code for each element of a request, made from the schema of the response.

Theory of operation. The answer to an element repeats what names it, and carries an error code. So the fields in `NAMES`
that both have are copied, and the error code is set. An element that is a plain value goes into the first of these
fields. An answer without an error code has answers to what lies inside of the element, to which the same applies:
partitions of topics.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat
from typing import Any, NamedTuple, Protocol, TypeVar

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.schema import Array, FieldLayout, Message, Structure, layout

NAMES = (
    "name",
    "topic",
    "topic_id",
    "resource_type",
    "resource_name",
    "group_id",
    "transactional_id",
    "key",
    "producer_id",
    "partition_index",
    "partition_id",
    "partition",
    "index",
)
"""The fields that name an element in requests and in their answers. Other fields of the same name say what is wanted in
the one, and what is so in the other."""

Given = Mapping[str, Any]
"""The fields of the answers that have neither an element's value nor their default."""
NOTHING: Given = {}

R = TypeVar("R", bound=Message)


class Arrays(Protocol):
    """The elements of a request, and their answers, by the names of the two arrays."""

    @property
    def elements(self) -> str: ...

    @property
    def answers(self) -> str: ...


class Elements(NamedTuple):
    """The same, where no need and no parts name them."""

    elements: str
    answers: str


@cache
def has_room_in(response: type[Message], versions: tuple[int, int]) -> bool:
    """Return whether the response has room for an error code of its own in each of these versions."""
    first, last = versions
    return all("error_code" in _fields(response, version) for version in range(first, last + 1))


def coded(
    response: type[R], arrays: Arrays, request: Message, codes: Iterator[int], version: int, given: Given = NOTHING
) -> R:
    """Return the response that says the next code to each element of an array of the request, or to what is in it."""
    of = _fields(response, version)[arrays.answers].structure
    assert of is not None, arrays.answers
    elements = getattr(request, arrays.elements) or ()
    return response(**{arrays.answers: _coded(of, elements, codes, version, given)})


def refused(response: type[R], request: Message, code: ErrorCode, version: int, given: Given = NOTHING) -> R:
    """Return the response that refuses the request: by an error code alone or, where it has no room for one, by array.

    The elements of the request's first array are refused in the first array of the response then.
    """
    if "error_code" in _fields(response, version):
        return response(error_code=code, **_told(response, version, given))
    first = Elements(_first_array(type(request), version), _first_array(response, version))
    return coded(response, first, request, repeat(code), version, given)


def has_array(request: Message, name: str, version: int) -> bool:
    """Return whether the request has an array of this name in a version."""
    return name in _fields(type(request), version)


@cache
def _fields(structure: type[Structure], version: int) -> Mapping[str, FieldLayout]:
    return {field.name: field for field in layout(structure, version).fields}


def _coded(
    of: type[Structure], elements: Sequence[Any], codes: Iterator[int], version: int, given: Given
) -> list[Structure]:
    """Return the answers of a class to elements of one kind."""
    if not elements:
        return []
    plan, told = _plan(of, elements[0].__class__, version), _told(of, version, given)
    if plan.code:
        return [of(**plan.names_of(each), **told, **{plan.code: next(codes)}) for each in elements]
    assert plan.inside is not None
    return [
        of(
            **plan.names_of(each),
            **told,
            **{plan.array: _coded(plan.inside, getattr(each, plan.elements), codes, version, given)},
        )
        for each in elements
    ]


class _Plan(NamedTuple):
    """The fields of an answer to an element: a request may have 100,000 of these."""

    copied: tuple[str, ...]
    plain: str
    """The field that an element goes into that is a plain value; empty: it is none, or has no such field."""
    code: str
    """The field of the error code; empty: what lies inside has it."""
    array: str = ""
    inside: type[Structure] | None = None
    elements: str = ""
    """The array of the element that is answered in `array`."""

    def names_of(self, element: Any) -> dict[str, Any]:
        """Return what names an element."""
        return {self.plain: element} if self.plain else {name: getattr(element, name) for name in self.copied}


@cache
def _plan(of: type[Structure], element: Any, version: int) -> _Plan:
    fields = _fields(of, version)
    named = [name for name in fields if name in NAMES]
    is_structure = issubclass(element, Structure)
    copied = tuple(name for name in named if is_structure and hasattr(element, name))
    plain = "" if is_structure or not named else named[0]
    code = next((name for name in fields if name.endswith("error_code")), "")
    if code:
        return _Plan(copied, plain, code)
    array, field = next((name, field) for name, field in fields.items() if field.structure is not None)
    return _Plan(copied, plain, "", array, field.structure, _first_array(element, version))


def _told(of: type[Structure], version: int, given: Given) -> dict[str, Any]:
    fields = _fields(of, version)
    return {name: value for name, value in given.items() if name in fields}


def _first_array(of: type[Structure], version: int) -> str:
    return next(name for name, field in _fields(of, version).items() if isinstance(field.wire, Array))
