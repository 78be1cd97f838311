"""The content of transactions that a client may use: what is known is not asked again, and no longer than it holds."""

import pytest

from exacta.front import known_content
from exacta.front.known_content import KnownContent

BOB, EVE = ("bob", "10.0.0.1", 1), ("eve", "10.0.0.1", 1)


class Rules:
    """Rules that note what they are asked."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = set(allowed)
        self.changes = 0
        self.known = KnownContent()

    def asked(self, key: tuple[object, ...], *names: str) -> tuple[bool, set[str]]:
        """Return whether it is allowed, and what was asked for that."""
        seen: set[str] = set()

        def may(name: str) -> bool:
            seen.add(name)
            return name in self.allowed

        return self.known.allows(key, frozenset(names), may, acl_changes=self.changes), seen


def test_what_is_known_is_not_asked_again() -> None:
    rules = Rules("a", "b", "c")
    assert rules.asked(BOB, "a", "b") == (True, {"a", "b"})
    assert rules.asked(BOB, "a", "b") == (True, set())
    assert rules.asked(BOB, "a", "b", "c") == (True, {"c"})
    assert rules.asked(BOB, "b") == (True, set())
    assert rules.asked(EVE, "a") == (True, {"a"})


def test_a_refusal_is_asked_each_time() -> None:
    rules = Rules("a")
    assert rules.asked(BOB, "x") == (False, {"x"})
    assert rules.asked(BOB, "a") == (True, {"a"})
    assert rules.asked(BOB, "a", "x") == (False, {"x"})
    rules.allowed.add("x")
    assert rules.asked(BOB, "a", "x") == (True, {"x"})


def test_a_rule_that_changes_ends_what_is_known() -> None:
    rules = Rules("a")
    assert rules.asked(BOB, "a") == (True, {"a"})
    rules.allowed.clear()
    rules.changes += 1
    assert rules.asked(BOB, "a") == (False, {"a"})


def test_it_forgets_all_where_that_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_content, "MOST_KNOWN", 3)
    rules = Rules("a", "b", "c", "d")
    assert rules.asked(BOB, "a", "b")[1] == {"a", "b"}
    assert rules.asked(EVE, "c", "d")[1] == {"c", "d"}
    assert rules.asked(BOB, "a", "b")[1] == {"a", "b"}
