"""No request keeps the event loop for long: `make test-attacks` measures it, and prints the table of costs."""

import os
from pathlib import Path

import pytest

from exacta.config.security import STANDARD_AUTHORIZER
from exacta.protocol.pulsar.frames import parse_frame
from tests.attacks import commands as pulsar
from tests.attacks.largest import attacks
from tests.attacks.measured import Cost, Measured, measured_server
from tests.attacks.requests import setting_up

pytestmark = [
    pytest.mark.skipif("EXACTA_TEST_ATTACKS" not in os.environ, reason="make test-with WHAT=attacks"),
    pytest.mark.timeout(900),
]

AIM_MS = 50
ALLOWED_MS = 150
"""Three times the aim: machines differ, and a turn of 20 ms may be followed by a collection of garbage."""
ALLOWED_IN_ONE_STEP_MS = 300
"""The bound for what is decided in one step: limits.md says how much that may be."""


OPTIONS = [
    word
    for setting in (
        "message.max.bytes=67108864",
        f"authorizer.class.name={STANDARD_AUTHORIZER}",
        "super.users=User:ANONYMOUS",
    )
    for word in ("--set", setting)
]
"""With access rules there is more to do: without them they could not be made."""


class Costs:
    """The table of costs, and what is too long in it."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.too_long: list[str] = []

    def add(self, asks: str, cost: Cost, *, is_one_step: bool) -> None:
        row = f"| {asks} | {cost.longest_ms:.0f} | {cost.waited_ms:.0f} | {cost.grown_mib:+.0f} |"
        self.rows.append(row)
        if cost.longest_ms > (ALLOWED_IN_ONE_STEP_MS if is_one_step else ALLOWED_MS):
            self.too_long.append(row)


def test_no_request_keeps_the_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    costs = Costs()
    with measured_server(tmp_path, *OPTIONS) as server:
        wire = server.connect()
        wire.ask(setting_up(), 7)
        for attack in attacks():
            request = attack.request()
            server.begin()
            try:
                wire.ask(request, attack.version)
            except ConnectionError:  # which is how it is refused
                wire.socket.close()
                wire = server.connect()
            costs.add(attack.asks, server.cost(), is_one_step=attack.is_one_step)
        wire.socket.close()
        _attack_by_commands(server, costs)
    with capsys.disabled():
        print("\n| the request | longest turn, ms | longest wait of a neighbour, ms | memory, MiB |")
        print("|---|---|---|---|", *costs.rows, sep="\n")
    assert not costs.too_long


def _attack_by_commands(server: Measured, costs: Costs) -> None:
    wire = server.connect_to_pulsar()
    commands = list(map(parse_frame, wire.ask(pulsar.setting_up())))
    ledger = max(each.command.send_receipt.message_id.ledger_id for each in commands)
    for attack in pulsar.commands():
        frames = list(attack.frames(ledger))
        server.begin()
        wire.ask(frames)
        costs.add(attack.asks, server.cost(), is_one_step=attack.is_one_step)
    wire.close()
