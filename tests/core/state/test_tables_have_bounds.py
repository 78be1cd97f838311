"""Every container and every text of the state has a bound, or says why it needs none."""

import re
from collections.abc import Iterator
from typing import get_args, get_type_hints

from msgspec import Struct

from exacta.core.state.state import State
from exacta.core.state.tables import BOUNDS, DERIVED
from exacta.core.values.limits import Limits
from exacta.core.values.usage import Table

GROWS = re.compile(r"\b(dict|list|set|frozenset|tuple|bytes|str)\b")


def parts_of(hint: object) -> Iterator[type]:
    """Yield the plain types in a type, at any depth."""
    found = get_args(hint)
    if isinstance(hint, type) and not found:
        yield hint
    for each in found:
        yield from parts_of(each)


def structs_of(root: type[Struct], found: dict[str, type[Struct]]) -> dict[str, type[Struct]]:
    """Return all structs that a struct leads to, subclasses included, by their names."""
    if root.__name__ in found:
        return found
    found[root.__name__] = root
    for hint in get_type_hints(root).values():
        for part in parts_of(hint):
            if issubclass(part, Struct):
                structs_of(part, found)
    return found


def growing_fields() -> set[str]:
    """Return the fields of the state that hold a container or a text."""
    fields: set[str] = set()
    for name, struct in structs_of(State, {}).items():
        hints = get_type_hints(struct)
        for field in struct.__struct_fields__:
            kinds = {part.__name__ for part in parts_of(hints[field])} | {str(hints[field])}
            if any(GROWS.search(kind) for kind in kinds):
                fields.add(f"{name}.{field}")
    return fields


def test_every_container_and_every_text_has_a_bound() -> None:
    bounded = [field for bound in BOUNDS for field in bound.fields]
    assert len(bounded) == len(set(bounded)), "a field has two bounds"
    missing = growing_fields() - set(bounded) - DERIVED.keys()
    assert not missing, f"fields of the state without a bound: {sorted(missing)}"
    assert not set(bounded) & DERIVED.keys()


def test_no_bound_is_of_a_field_that_is_gone() -> None:
    structs = structs_of(State, {})
    known = {f"{name}.{field}" for name, struct in structs.items() for field in struct.__struct_fields__}
    assert {field for bound in BOUNDS for field in bound.fields} | DERIVED.keys() <= known


def test_every_table_is_one_row_and_has_a_limit() -> None:
    assert sorted(bound.table.name for bound in BOUNDS if bound.table is not None) == sorted(
        each.name for each in Table
    )
    limits = Limits()
    for bound in BOUNDS:
        assert bound.table is not None or bound.counts, bound.name
        names = (*bound.counts, *(() if bound.table is None else (bound.table.value,)))
        assert all(getattr(limits, name) > 0 for name in names)
