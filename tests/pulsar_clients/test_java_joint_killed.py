"""Both clients for Java take part in joint transactions under kill -9 (`joint_campaign.py`)."""

from pathlib import Path

import pytest

from tests.pages.blocks import ROOT, blocks_of
from tests.pulsar_clients.brokers import ON_PULSAR
from tests.pulsar_clients.campaign import KILLS, TIMEOUT_S
from tests.pulsar_clients.joint_campaign import transfer_under_kills
from tests.pulsar_clients.transforming import compiled

PAGE = ROOT / "docs/reference/join-transaction.md"


@pytest.mark.skipif(ON_PULSAR, reason="no other broker has such transactions")
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("buffer", ["marker", "sidecar"])
def test_each_order_is_done_once_by_both_and_readers_agree(tmp_path: Path, reports: list[str], buffer: str) -> None:
    (classes := tmp_path / "classes").mkdir()
    [printed] = [each for each in blocks_of(PAGE) if each.language == "java"]
    (joining := tmp_path / "JoinTransaction.java").write_text(printed.text)
    program = compiled(classes, joining, Path(__file__).with_name("Transfers.java"))
    reports.append(transfer_under_kills(program, KILLS, tmp_path, buffer))
