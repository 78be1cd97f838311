"""The commands of quotas, and what decides each; `core/decide.py` has the table of all commands."""

from collections.abc import Callable
from typing import Any

from exacta.core.commands import AlterClientQuotas, Command
from exacta.core.outcome import Outcome
from exacta.core.quotas import altering
from exacta.core.state.state import State

RULES: dict[type[Command], Callable[[State, Any, int], Outcome]] = {AlterClientQuotas: altering.alter}
