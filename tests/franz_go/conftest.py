"""Only where `make test-with WHAT=go` runs (Go): builds the program once, and runs a broker for the plain scenarios."""

import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.brokers import plain_broker

# Elsewhere nothing here is even imported.
collect_ignore_glob = [] if os.environ.get("EXACTA_TEST_FRANZ_GO") else ["test_*.py"]

BUILD_TIMEOUT_S = 600
_numbers = itertools.count()


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program; Go fetches what it needs, and checks that against go.sum."""
    path = tmp_path_factory.mktemp("go") / "franz_go"
    command = ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(path), "."]
    subprocess.run(command, cwd=Path(__file__).parent, check=True, timeout=BUILD_TIMEOUT_S)
    return path


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The broker that nobody kills: Exacta, or with EXACTA_TEST_BROKER=kafka a node of Apache Kafka."""
    with plain_broker(tmp_path_factory.mktemp("broker")) as address:
        yield address


@pytest.fixture
def name() -> str:
    """A name that nobody has used."""
    return f"go-{os.getpid()}-{next(_numbers)}"
