"""Fronts with small budgets, for the tests of connections."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.front.plain_front import IDLE_MS, STALL_MS, PlainFront, Start


@pytest.fixture
def start() -> Iterator[Start]:
    """Start fronts with small budgets; at the end all clients vanish, and nothing may be left of them."""
    started: list[PlainFront] = []

    def starting(**options: Any) -> PlainFront:
        given = {
            "connections_max_stall_ms": STALL_MS,
            "connections_max_idle_ms": IDLE_MS,
            "queued_max_request_bytes": 1 << 20,
            "queued_max_response_bytes": 1 << 20,
        }
        started.append(PlainFront(**(given | options)))
        return started[-1]

    yield starting
    for front in started:
        front.end()
