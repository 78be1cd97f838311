"""Fixtures of the conformance suite: every scenario runs once for each client library."""

import gc
import itertools
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from exacta.testing.proxy import HOST, Proxy
from tests.conformance.brokers import GIVEN_BOOTSTRAP, ON_KAFKA, BrokerProcess, broker_process, plain_broker
from tests.conformance.clients import CLIENTS, Client, GroupProtocol
from tests.conformance.scenario import Scenario

SCENARIO_TIMEOUT_S = 400 if ON_KAFKA else 90
_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let no scenario hang for long, nor fail for a socket that a client library forgets when it cannot connect."""
    here = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.timeout(SCENARIO_TIMEOUT_S))
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """One client library, and the end of everything that a scenario opened with it."""
    client = request.param()
    level = (logger := logging.getLogger(client.logger)).level
    # What a library logs of a broken connection keeps that alive for as long as pytest keeps the log.
    logger.setLevel(logging.CRITICAL + 1)
    yield client
    client.close()
    logger.setLevel(level)
    # Forgotten sockets are found here, where the warnings about them are ignored, and not in somebody else's test.
    gc.collect()
    gc.freeze()  # looking again through what all earlier tests have left takes a quarter of a second each time


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The broker that nobody kills: one for all scenarios, which use names of their own."""
    with plain_broker(tmp_path_factory.mktemp("broker")) as address:
        yield address


@pytest.fixture
def scenario(client: Client, bootstrap: str) -> Scenario:
    """A scenario on the broker that nobody kills."""
    return Scenario(client, bootstrap, _unique_name())


@pytest.fixture
def consumer_scenario(client: Client, bootstrap: str) -> Scenario:
    """The same, with groups of the consumer protocol (KIP-848)."""
    return Scenario(client, bootstrap, _unique_name(), GroupProtocol.CONSUMER)


@pytest.fixture
def crash_consumer_scenario(client: Client, broker: BrokerProcess) -> Scenario:
    """A scenario with groups of the consumer protocol on the broker that may be killed."""
    return Scenario(client, broker.bootstrap, _unique_name(), GroupProtocol.CONSUMER)


def _process_scope(fixture_name: str, config: pytest.Config) -> Literal["session", "function"]:
    """A fresh broker for each scenario, where starting one is cheap."""
    return "session" if ON_KAFKA else "function"


@pytest.fixture(scope=_process_scope)
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker in its own process, to be killed."""
    _skip_without_process()
    with broker_process(tmp_path_factory.mktemp("broker")) as process:
        yield process
    # Whatever the scenario did to it, a broker ends by SIGTERM; broker_process has checked that.


@pytest.fixture
def crash_scenario(client: Client, broker: BrokerProcess) -> Scenario:
    """A scenario on the broker that may be killed."""
    return Scenario(client, broker.bootstrap, _unique_name())


@pytest.fixture(scope="session")
def proxied_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Proxy, BrokerProcess]]:
    """A broker whose clients all come through a proxy: one for all scenarios, which use names of their own.

    The scenarios that kill it leave it running.
    """
    _skip_without_process()
    proxy = Proxy()
    try:
        with broker_process(tmp_path_factory.mktemp("broker"), advertised_port=proxy.port) as process:
            proxy.upstream = HOST, process.port
            yield proxy, process
    finally:
        proxy.close()


@pytest.fixture
def proxy(proxied_broker: tuple[Proxy, BrokerProcess]) -> Iterator[Proxy]:
    """The proxy, with no fault armed before or after the scenario."""
    yield proxied_broker[0]
    proxied_broker[0].faults.clear()


@pytest.fixture
def hidden_broker(proxied_broker: tuple[Proxy, BrokerProcess]) -> BrokerProcess:
    """The broker behind the proxy."""
    return proxied_broker[1]


@pytest.fixture
def proxied_scenario(client: Client, proxy: Proxy) -> Scenario:
    """A scenario whose clients come through the proxy."""
    return Scenario(client, proxy.bootstrap_servers, _unique_name())


def _unique_name() -> str:
    return f"t{os.getpid()}-{next(_numbers)}"


def _skip_without_process() -> None:
    if GIVEN_BOOTSTRAP:
        pytest.skip("the broker at EXACTA_TEST_BOOTSTRAP is not ours to kill")
