"""Both brokers, started once for all the subjects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tests.differential.flights
import tests.differential.membership
import tests.differential.odd
import tests.differential.reads
import tests.differential.transactions  # noqa: F401  # how steps are sent
from tests.conformance.brokers import HOST, kafka_process
from tests.differential.exhaustion import prepare_exacta, prepare_kafka
from tests.differential.group_brokers import brokers
from tests.differential.side import Side, prepared_name
from tests.differential.steps import CLIENTS
from tests.kafka.wire import front

__all__ = ["brokers", "sides"]

_KAFKAS = (
    "num.partitions=2",
    # One thread each, so that what is sent first on one of several connections is also looked at first (`parking.py`).
    "num.network.threads=1",
    "num.io.threads=1",
)
_PREPARED = 5_000
"""Sequences that begin near the last epoch, with those that shorten one."""


@pytest.fixture(scope="session")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Apache Kafka and Exacta."""
    with (
        kafka_process(tmp_path_factory.mktemp("kafka"), overrides=_KAFKAS) as kafka,
        front(num_partitions=2, group_initial_rebalance_delay_ms=0) as exacta,
    ):
        prepared = [f"{prepared_name(number)}-{client}" for number in range(_PREPARED) for client in CLIENTS]
        prepare_exacta(exacta, prepared)
        prepare_kafka((HOST, kafka.port), prepared)
        kafka.stop()
        kafka.start()
        both = Side((HOST, kafka.port)), Side(exacta.address)
        yield both
        for side in both:
            side.close()
