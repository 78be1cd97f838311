"""A state as JSON can hold it."""

from enum import Enum
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from exacta.core.state.state import State
from exacta.core.values.secret import Secret


def described(value: object) -> Any:
    """Return a state as JSON can hold it, by the names of its fields; the volatile part is left out."""
    match value:
        case State():
            durable = (field.name for field in fields(value) if field.name not in ("limits", "volatile"))
            return {name: described(getattr(value, name)) for name in durable}
        case Struct():
            return {field.name: described(getattr(value, field.name)) for field in fields(value)}
        case Enum():
            return value.name
        case bytes():
            return value.hex()
        case Secret():
            return value.value.hex()
        case dict() if any(isinstance(each, Struct) for each in value):  # without values it is an ordered set
            return [
                described(key) if entry is None else [described(key), described(entry)] for key, entry in value.items()
            ]
        case dict():
            return {str(key): described(entry) for key, entry in value.items()}
        case set() | frozenset():
            return sorted((described(entry) for entry in value), key=str)
        case list() | tuple():
            return [described(entry) for entry in value]
        case _:
            return value
