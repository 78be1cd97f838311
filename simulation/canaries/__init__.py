"""Planted bugs, each of a kind that brokers have had: a simulation that does not find one is blind there.

Owns the registry. A canary is a context manager that patches the product while it is entered, and names what it
stands for, and the violation that shows it. The bugs are those of the table that the project keeps of Kafka's and
others', and of storage engines.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, ModuleType
from typing import Any, NamedTuple

Replacements = list[tuple[object, Any, object]]
"""A canary replaces these: the owner, the name of its attribute or the key in it, and the replacement."""


class Canary(NamedTuple):
    """One planted bug."""

    name: str
    stands_for: str
    shows: str
    """A pattern of the violations by which it is known: whatever else goes wrong, it is not for this bug."""
    plant: Callable[[], Any]
    """A context manager: the bug is there while it is entered."""
    replacements: Callable[[], Replacements]
    """Return what is replaced while the bug is there."""

    def touches(self) -> set[str]:
        """Return its own module, those that it names and those of what it replaces: a change there may hide it."""
        return {self.replacements.__module__, *_named(self.replacements), *_replaced(self.replacements())}

    def is_seen_in(self, violations: Iterable[str]) -> bool:
        """Say whether one of these is by this bug."""
        return any(re.search(self.shows, violation) for violation in violations)


_CANARIES: dict[str, Canary] = {}


def canary(stands_for: str, *, shows: str) -> Callable[[Callable[[], Replacements]], Canary]:
    """Register a function that returns what is to be replaced."""

    def register(replacements: Callable[[], Replacements]) -> Canary:
        @contextmanager
        def plant() -> Iterator[None]:
            undo: Replacements = []
            try:
                for owner, name, replacement in replacements():
                    undo.append((owner, name, _own(owner, name)))
                    _set(owner, name, replacement)
                yield
            finally:
                for owner, name, original in reversed(undo):
                    _set(owner, name, original)

        name = replacements.__name__.replace("_", "-")
        found = _CANARIES[name] = Canary(name, stands_for, shows, plant, replacements)
        return found

    return register


def _named(function: Callable[..., Any]) -> Iterator[str]:
    """Yield the modules of what a function names, itself and in the functions that it defines."""
    codes: list[CodeType] = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
        for name in code.co_names:
            yield _module(function.__globals__.get(name))


def _replaced(replacements: Replacements) -> Iterator[str]:
    """Yield the modules of the owners, and of the functions that are replaced: a table may hold those of others."""
    for owner, name, _ in replacements:
        yield _module(owner)
        yield _module(owner[name] if isinstance(owner, dict) else getattr(owner, name, None))


def _module(named: object) -> str:
    return named.__name__ if isinstance(named, ModuleType) else getattr(named, "__module__", None) or ""


_INHERITED = object()
"""This stands for a class's own attribute where it has none of that name and inherits it."""


def _own(owner: object, name: Any) -> object:
    if isinstance(owner, dict):
        return owner[name]
    if not isinstance(owner, type):
        return getattr(owner, name)
    if name not in owner.__dict__ and hasattr(owner, name):
        return _INHERITED
    return owner.__dict__[name]


def _set(owner: object, name: Any, value: object) -> None:
    if isinstance(owner, dict):
        owner[name] = value
    elif value is _INHERITED:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


def canaries() -> dict[str, Canary]:
    """Return all, by name."""
    from simulation.canaries import (  # noqa: F401  # each registers its own
        access,
        answers,
        bodies,
        bounds,
        commits,
        exclusive,
        expiry,
        full_disk,
        groups,
        joint,
        keeping,
        leaders,
        mixed,
        options,
        principals,
        pulsar,
        readers,
        redeliveries,
        staging,
        storage,
        subscriptions,
        transactions,
        upkeep,
    )

    return dict(_CANARIES)
