"""The reference page of the Python API, made from docstrings.

Theory of operation. The public names are those of `__all__` of three packages, and the classes whose objects their
calls hand out (`HANDED_OUT`). griffe reads them from the source, without importing it, so that no Spark and no driver
of a database is needed; it also knows the strings below attributes, which documentation at run time does not have.

A docstring stands here as it is written: prose in Markdown, with indented examples. A name without a docstring is left
out if it is private or an override, and is a mistake otherwise.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import griffe

SOURCE = Path(__file__).parents[2] / "src"

PACKAGES = {
    "exacta": "`import exacta` loads nothing until one of these names is asked for.",
    "exacta.testing": "The test kit. [Testing with Exacta](../how-to/testing.md) shows how its parts go together.",
    "exacta.spark": (
        '[Spark source and sink](spark.md) is the reference of `format("exacta")`, and of what these calls do in a job.'
    ),
}
"""Packages whose `__all__` is public -> what is said of them."""

HANDED_OUT = {
    "exacta": (
        "exacta.databases.two_phase.TwoPhase",
        "exacta.databases.transaction.Transaction",
        "exacta.transform.confluent.ExactlyOnce",
        "exacta.transform.confluent.Transaction",
        "exacta.transform.aio.AsyncExactlyOnce",
        "exacta.transform.aio.AsyncTransaction",
    ),
    "exacta.testing": (
        "exacta.testing.Fault",
        "exacta.testing.clock.MovableClock",
        "exacta.testing.fault_commands.Faults",
    ),
}
"""Classes that nobody makes by hand: calls return them, and a Broker has them."""

OPAQUE = {"exacta.Postgres", "exacta.Sqlite"}
"""Classes whose objects are made and handed on: their members are for `exacta.two_phase` alone."""

INTERNAL = {"act", "in_engine", "make", "raise_error", "told"}
"""Methods that the package itself calls."""

ELSEWHERE = {"exacta.Broker": "exacta.testing.Broker", "exacta.spark": "exacta.spark", "exacta.__version__": ""}
"""Names of `exacta.__all__` that stand in another place of the page, or that say all there is to say by their name."""

_STARS = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}

_HEAD = """# Python API

Every public name, with its arguments. What is not on this page may change without notice.
"""


@cache
def source() -> griffe.Object | griffe.Alias:
    """Return the package as griffe reads it, which takes seconds."""
    return griffe.load("exacta", search_paths=[SOURCE], resolve_aliases=True, allow_inspection=False)


def page() -> str:
    """Return the page as Markdown. Raises ValueError for a public name that has no docstring."""
    root = source()
    parts = [_HEAD]
    for package, words in PACKAGES.items():
        parts += [f"## `{package}`", "", words, ""]
        for name in public_names(root, package):
            parts += _entry(f"{package}.{name}", _public(root, package, name))
        for path in HANDED_OUT.get(package, ()):
            if path.rpartition(".")[0] != package:
                parts += _entry(path, _found(root, path))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def public_names(root: griffe.Object | griffe.Alias, package: str) -> list[str]:
    """Return the names of a package that have an entry in the page, in their order there."""
    exports = [str(name) for name in _found(root, package).exports or ()]
    return sorted((name for name in exports if f"{package}.{name}" not in ELSEWHERE), key=str.lower)


def _found(root: griffe.Object | griffe.Alias, path: str) -> griffe.Object:
    found = root[path.removeprefix("exacta.")] if path != "exacta" else root
    return found.final_target if isinstance(found, griffe.Alias) else found


def _public(root: griffe.Object | griffe.Alias, package: str, name: str) -> griffe.Object:
    """Return what a package exports by a name; a function may have the name of the module that it is in."""
    found = _found(root, f"{package}.{name}")
    return found[name] if found.is_module else found


# --- entries ---


def _entry(name: str, what: griffe.Object) -> Iterator[str]:
    yield f"### `{name}`"
    yield ""
    if what.is_function:
        assert isinstance(what, griffe.Function)
        forms = _overloads(what) or [what]
        yield from ("\n\n".join(_signature(each, what.name) for each in forms), "", _docstring(what), "")
        return
    assert isinstance(what, griffe.Class)
    initializer = what.all_members.get("__init__")
    if isinstance(initializer, griffe.Function) and not _is_handed_out(name):
        yield from (_signature(initializer, what.name), "")
    yield from (_docstring(what), "")
    if name not in OPAQUE:
        yield from _members(what)


def _overloads(function: griffe.Function) -> Sequence[griffe.Function]:
    """Return the forms in which a function is declared, if these are several."""
    return function.overloads or getattr(function.parent, "overloads", {}).get(function.name, ())


def _is_handed_out(name: str) -> bool:
    return any(name in names for names in HANDED_OUT.values())


def _members(of: griffe.Class) -> Iterator[str]:
    """Yield the public attributes, and the methods that have a docstring, also inherited ones, as a table each."""
    members = {name: _target(each) for name, each in of.all_members.items() if not name.startswith("_")}
    named = [(name, each) for name, each in members.items() if each is not None and name not in INTERNAL]
    attributes = [(_attribute(each), each) for _, each in named if isinstance(each, griffe.Attribute)]
    methods = [(_signature(each, name), each) for name, each in named if isinstance(each, griffe.Function)]
    for heading, rows in (("Attribute", attributes), ("Method", methods)):
        shown = [(cell, each.docstring.value if each.docstring else "") for cell, each in rows if cell]
        shown = [(cell, words) for cell, words in shown if words or heading == "Attribute"]
        if shown:
            yield from (f"| {heading} | |", "|---|---|")
            yield from (f"| {_cell(cell)} | {_cell(words.strip())} |".replace("|  |", "| |") for cell, words in shown)
            yield ""


def _attribute(attribute: griffe.Attribute) -> str:
    """Return an attribute with its type; nothing for one that is not documented, by words or by a type."""
    if "property" in attribute.labels or (attribute.annotation is None and attribute.docstring):
        return f"`{attribute.name}`"
    if attribute.annotation is not None:
        return f"`{attribute.name}: {_shown(attribute.annotation)}`"
    is_value = "class-attribute" in attribute.labels and attribute.value is not None  # of an enum
    return f"`{attribute.name} = {attribute.value}`" if is_value else ""


def _target(member: griffe.Object | griffe.Alias) -> griffe.Object | None:
    if not isinstance(member, griffe.Alias):
        return member
    try:
        return member.final_target
    except griffe.AliasResolutionError:  # of a library that is not loaded
        return None


def _signature(function: griffe.Function, name: str) -> str:
    parameters = [each for each in function.parameters if each.name not in ("self", "cls")]
    returns = "" if function.name == "__init__" or function.returns is None else f" -> {_shown(function.returns)}"
    awaited = "await " if "async" in function.labels else ""
    return f"`{awaited}{name}({', '.join(_parameters(parameters))}){returns}`"


def _parameters(parameters: Sequence[griffe.Parameter]) -> Iterator[str]:
    by_name = False
    for each in parameters:
        star = _STARS.get(each.kind, "") if each.kind else ""
        if each.kind is griffe.ParameterKind.keyword_only and not by_name:
            yield "*"
        by_name |= each.kind in (griffe.ParameterKind.keyword_only, griffe.ParameterKind.var_positional)
        annotation = "" if each.annotation is None else f": {_shown(each.annotation)}"
        default = "" if each.default is None or star else f" = {_value(each.default)}"
        yield f"{star}{each.name}{annotation}{default}"


def _value(default: str | griffe.Expr) -> str:
    """Return a default, or what it is where a constant of ours stands for it."""
    while isinstance(default, griffe.ExprName):
        constant = _found(source(), default.canonical_path)
        if not isinstance(constant, griffe.Attribute) or constant.value is None:
            break
        default = constant.value
    return str(default)


def _shown(annotation: str | griffe.Expr) -> str:
    """Return an annotation as it is written, without the quotes of what is declared later."""
    return str(annotation).strip("\"'")


def _docstring(what: griffe.Object) -> str:
    if what.docstring is None:
        raise ValueError(f"{what.path} is public, and has no docstring")
    return what.docstring.value.strip()


def _cell(text: str) -> str:
    """Return text for a cell of a table: paragraphs on one line, and no code that would need lines of its own."""
    return re.sub(r"\s*\n\s*", " ", text).replace("|", "\\|")
