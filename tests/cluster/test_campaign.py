"""Three brokers over a PostgreSQL lose, double, tear and reorder nothing, and tell nothing that is stale, under faults.

The clients are those of `exacta verify`. A fault comes when each of its five commits has come since the one before: so
the cluster has gone on after each fault.
"""

import os
import random
import time
from pathlib import Path

import pytest

from exacta.client.security import Cluster
from exacta.verify.analysis.ledger import fold
from exacta.verify.analysis.verdict import analyse
from exacta.verify.campaign.run import Campaign
from exacta.verify.campaign.settings import CampaignSettings
from exacta.verify.history import NEVER_ENDED, Workload
from exacta.verify.history_file import read_history
from tests.cluster.machines import three_machines
from tests.cluster.nemesis import Nemesis
from tests.cluster.observing import Answer, Observer, fractured_reads, stale_reads

KILLS = int(os.environ.get("EXACTA_TEST_CLUSTER", "0"))
SEED = int(os.environ.get("EXACTA_TEST_SEED", "1"))
_S_PER_FAULT = 60.0
_PER_RUN = 10

RUNS = [(number, min(_PER_RUN, KILLS - first)) for number, first in enumerate(range(0, KILLS, _PER_RUN))]


@pytest.mark.skipif(not KILLS, reason="make test-cluster")
@pytest.mark.parametrize(("number", "faults"), RUNS or [(0, 0)])
@pytest.mark.timeout(_PER_RUN * _S_PER_FAULT + 600)
def test_nothing_is_found(number: int, faults: int, tmp_path: Path, reports: list[str]) -> None:
    chance = random.Random(f"{SEED} {number}")
    sidecar, pulsar = number % 2 == 1, number % 4 in (1, 2)
    with three_machines(tmp_path) as machines:
        epoch_ns = time.monotonic_ns()
        settings = CampaignSettings(
            workloads=tuple(Workload),
            duration_s=_PER_RUN * _S_PER_FAULT,
            most_commits=1,
            least_faults=faults,
            producers=1 if pulsar else 2,
            rate=20.0,
            transaction_buffer="sidecar" if sidecar else "",
            seed=chance.randrange(1 << 30),
            kill_clients_every_s=0,
            restart_every_s=2.0,
            pulsar_url=machines.pulsar_url if pulsar else "",
            directory=tmp_path / "run",
        )
        said: list[str] = []

        def say(text: str) -> None:
            said.append(f"{(time.monotonic_ns() - epoch_ns) / 1e9:7.1f} s: {text}")
            (tmp_path / "said").write_text("\n".join(said))

        nemesis = Nemesis(machines, chance.randrange(1 << 30), lambda: (time.monotonic_ns() - epoch_ns) // 1000)
        campaign = Campaign(Cluster(bootstrap=machines.bootstrap), settings, "test", say, nemesis)
        observers = [
            Observer(each.node_id, each.address, campaign.topics, campaign.group, epoch_ns)
            for each in machines.brokers.values()
        ]
        try:
            path = campaign.run()
        finally:
            for each in observers:
                each.end()
        ended = {each.node_id: each.exit_code for each in machines.brokers.values()}
    history = list(read_history(path))
    verdict, ledger = analyse(history), fold(history)
    answers: list[Answer] = [answer for each in observers for answer in each.answers]
    told = {kind: sum(each.kind == kind for each in answers) for kind in ("stable", "high", "group", "fetched")}
    reports.append(f"cluster {number}: {verdict.figures}, {verdict.faults}; observed {told}; {path}")
    found = [each.message for kind in verdict.anomalies for each in verdict.examples[kind]]
    assert not found
    assert not verdict.unchecked
    assert not stale_reads(answers)
    if sidecar:
        assert not fractured_reads(answers, ledger)
    assert NEVER_ENDED not in verdict.faults, "a call of a client has not returned within its own time-out"
    assert set(ended.values()) == {None}, "a broker has ended by itself"
    assert all(told.values())
