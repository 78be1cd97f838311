"""Fixtures of the scenarios; those in Java run only where `make test-with WHAT=pulsar` runs (Java and Maven)."""

import os
from collections.abc import Iterator

import pytest

from tests.pulsar_clients.brokers import Given, broker_under_test, unique

# Elsewhere they are not even imported.
collect_ignore_glob = [] if os.environ.get("EXACTA_TEST_JAVA") else ["test_java_*.py"]


@pytest.fixture(scope="session")
def given(request: pytest.FixtureRequest) -> Iterator[Given]:
    """One broker for all scenarios, which use topics of their own; a parameter says of which kind these are."""
    with broker_under_test(transaction_buffer=getattr(request, "param", "marker")) as found:
        yield found


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic that nobody has used."""
    return unique(request.node.name)


@pytest.fixture
def java(given: Given) -> Iterator[object]:
    """A client in Java, which ends with the scenario."""
    from tests.pulsar_clients.java import JavaClient

    client = JavaClient(given.url)
    yield client
    client.close()


@pytest.fixture
def other_java(given: Given) -> Iterator[object]:
    """Another one, with connections of its own."""
    from tests.pulsar_clients.java import JavaClient

    client = JavaClient(given.url)
    yield client
    client.close()
