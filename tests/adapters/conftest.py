"""Every adapter of the ports of journal, ledger and objects, for the tests of their contracts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from exacta.ports.journal import Journal
from tests.adapters import ledger_benches, moto_server, object_benches, real_postgres
from tests.adapters.bench import Bench
from tests.adapters.ledger_benches import LedgerBench
from tests.adapters.object_benches import ObjectBench
from tests.adapters.shared.brokers import Brokers
from tests.adapters.turns import Turns


@pytest.fixture(params=["memory", "local", "simulated disk", "shared"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(request.param, tmp_path)
    yield bench
    bench.end()


@pytest.fixture
def turns(bench: Bench) -> Turns:
    return bench.turns


@pytest.fixture
def journal(bench: Bench) -> Journal:
    return bench.open()


@pytest.fixture(scope="session", autouse=True)
def end_of_real_servers() -> Iterator[None]:
    yield
    real_postgres.end()
    moto_server.end()


@pytest.fixture(params=ledger_benches.BENCHES)
def ledgers(request: pytest.FixtureRequest) -> Iterator[LedgerBench]:
    defects: list[str] = []
    with ledger_benches.BENCHES[request.param]() as bench:
        bench.loop.set_exception_handler(lambda _, context: defects.append(str(context)))
        yield bench
    assert defects == []


@pytest.fixture(params=object_benches.BENCHES)
def stores(request: pytest.FixtureRequest) -> Iterator[ObjectBench]:
    with object_benches.BENCHES[request.param]() as bench:
        yield bench


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    brokers = Brokers()
    yield brokers
    brokers.loop.close()
