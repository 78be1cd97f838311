"""Answers that are an error code for each element of a request, made from the schema of the response.

Theory of operation. The answer to an element repeats what names it, and carries an error code. So the fields in `NAMES`
that both have are copied, and the error code is set. An element that is a plain value goes into the first of these
fields. An answer without an error code has answers to what lies inside of the element, to which the same applies:
partitions of topics.
"""

from collections.abc import Iterator, Mapping
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
    return response(**{arrays.answers: [_coded(of, each, codes, version, given) for each in elements]})


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


def _coded(of: type[Structure], element: Any, codes: Iterator[int], version: int, given: Given) -> Structure:
    """Return the answer of a class to one element."""
    fields = _fields(of, version)
    named = [name for name in fields if name in NAMES]
    if isinstance(element, Structure):
        told = {name: getattr(element, name) for name in named if hasattr(element, name)}
    else:
        told = {named[0]: element} if named else {}
    told |= _told(of, version, given)
    own = next((name for name in fields if name.endswith("error_code")), None)
    if own is not None:
        return of(**told, **{own: next(codes)})
    name, field = next((name, field) for name, field in fields.items() if field.structure is not None)
    assert field.structure is not None
    inside = getattr(element, _first_array(type(element), version))
    return of(**told, **{name: [_coded(field.structure, each, codes, version, given) for each in inside]})


def _told(of: type[Structure], version: int, given: Given) -> dict[str, Any]:
    fields = _fields(of, version)
    return {name: value for name, value in given.items() if name in fields}


def _first_array(of: type[Structure], version: int) -> str:
    return next(name for name, field in _fields(of, version).items() if isinstance(field.wire, Array))
