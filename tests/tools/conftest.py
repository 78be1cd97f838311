"""Fixtures of the tools' tests; only where `make test-with WHAT=tools` runs (Java and Maven)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.brokers import plain_broker
from tests.tools.bench import Bench
from tests.tools.toolbox import Toolbox, toolbox

# Elsewhere nothing here is even imported.
collect_ignore_glob = [] if os.environ.get("EXACTA_TEST_TOOLS") else ["test_*.py"]


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The broker under test: Exacta, or with EXACTA_TEST_BROKER=kafka a node of Apache Kafka."""
    with plain_broker(tmp_path_factory.mktemp("broker")) as address:
        yield address


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toolbox]:
    """The tools."""
    with toolbox(tmp_path_factory.mktemp("tools") / "log") as running:
        yield running


@pytest.fixture(scope="session")
def _session_bench(bootstrap: str, tools: Toolbox) -> Bench:
    return Bench(bootstrap, tools)


@pytest.fixture
def bench(_session_bench: Bench) -> Iterator[Bench]:
    """The tools and the broker, and the end of all clients that a test has opened."""
    yield _session_bench
    _session_bench.close_clients()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for the files that tools read."""
    return tmp_path
