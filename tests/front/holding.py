"""A log that confirms nothing until it is let: one of several brokers that does not know yet whether it still leads."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from exacta.core.commands import Command
from exacta.engine.engine import Engine


class Holding:
    """Holds what is to be confirmed, and counts the submits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: list[tuple[Callable[[], None], bool]] | None = None
        """None: everything is confirmed."""
        self.submits = 0
        confirm, submit = Engine.confirm, Engine.submit

        def confirmed(engine: Engine, answer: Callable[[], None], is_shown: bool = False) -> int:
            if self.held is None:
                return confirm(engine, answer, is_shown)
            self.held.append((answer, is_shown))
            return 0

        def submitted(engine: Engine, commands: Sequence[Command], *rest: Any, **named: Any) -> int:
            self.submits += 1
            return submit(engine, commands, *rest, **named)

        monkeypatch.setattr(Engine, "confirm", confirmed)
        monkeypatch.setattr(Engine, "submit", submitted)

    def release(self, engine: Engine) -> None:
        held, self.held = self.held or [], None
        for answer, is_shown in held:
            engine.confirm(answer, is_shown)
