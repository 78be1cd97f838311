"""Every adapter of the journal port, for the tests of its contract."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from exacta.ports.journal import Journal
from tests.adapters.bench import Bench
from tests.adapters.turns import Turns


@pytest.fixture(params=["memory", "local", "simulated disk"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(request.param, tmp_path)
    yield bench
    bench.close()


@pytest.fixture
def turns(bench: Bench) -> Turns:
    return bench.turns


@pytest.fixture
def journal(bench: Bench) -> Journal:
    return bench.open()
