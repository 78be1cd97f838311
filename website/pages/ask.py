"""The page of Ask, made from the structs of the read model and from the prose in `ask.template`."""

from collections.abc import Iterator
from pathlib import Path

import griffe

from exacta.core.subscriptions.description import WaitReason
from exacta.core.transactions.description import CAUSES
from website.pages.markdown import table
from website.pages.python_api import source

_PROSE = Path(__file__).with_name("ask.template")

MODULES = ("transactions", "groups", "subscriptions", "cluster")

QUESTIONS = {
    "AskTransactions": "transactions",
    "AskLag": "lag",
    "AskSubscriptions": "subscriptions",
    "AskCluster": "cluster",
}
"""Questions, and the `type` by which their JSON names them."""


def page() -> str:
    """Return the page."""
    made = {
        "structs": "\n".join(line for module in MODULES for line in _module(module)).strip(),
        "causes": "\n".join(f"- {words}" for words in CAUSES.values()),
        "waits": "\n".join(f"- {words}" for words in WaitReason),
    }
    text = _PROSE.read_text(encoding="utf-8")
    for name, content in made.items():
        text = text.replace(f"<!-- {name} -->", content)
    return text


def _module(name: str) -> Iterator[str]:
    module = source()[f"readmodel.{name}"]
    for found in module.classes.values():
        yield f"### {found.name}\n"
        yield _text(found) + "\n"
        rows = [
            (f"`{each.name}`", f"`{each.annotation}`".replace("|", "\\|"), _text(each).replace("\n", " "))
            for each in found.attributes.values()
            if each.annotation is not None and "property" not in each.labels
        ]
        if found.name in QUESTIONS:
            rows.insert(0, ("`type`", "`str`", f"`{QUESTIONS[found.name]}`"))
        yield table(("field", "type", ""), rows) + "\n"


def _text(found: griffe.Object) -> str:
    return "" if found.docstring is None else found.docstring.value.strip()
