"""The proxy before a broker in another process: the conformance scenarios lose requests and answers with it."""

import time
from collections.abc import Iterator

import pytest

import exacta
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest
from exacta.server.listeners import parse_endpoint
from exacta.testing import FaultNotMet
from exacta.testing.proxy import HOST, Proxy
from tests.kafka.wire import Wire


@pytest.fixture(scope="module")
def upstream() -> Iterator[tuple[str, int]]:
    with exacta.Broker() as broker:
        yield HOST, parse_endpoint(broker.bootstrap_servers).port


def test_an_answer_comes_late(upstream: tuple[str, int]) -> None:
    with Proxy(upstream) as proxy:
        wire = Wire((HOST, proxy.port))
        with wire.socket:
            proxy.faults.delay("Metadata", seconds=0.2)
            began = time.monotonic()
            assert wire.ask(MetadataRequest(topics=[]), 9).brokers
            assert time.monotonic() - began >= 0.2
            wire.ask(MetadataRequest(topics=[]), 9)


def test_a_connection_is_cut_as_often_as_is_asked_for(upstream: tuple[str, int]) -> None:
    with Proxy(upstream) as proxy:
        fault = proxy.faults.cut_connection("Metadata", times=2)
        for _ in range(2):
            assert not fault.happened
            wire = Wire((HOST, proxy.port))
            with wire.socket:
                wire.send(MetadataRequest(topics=[]), 9)
                assert wire.is_closed()
        fault.wait()
        wire = Wire((HOST, proxy.port))
        with wire.socket:
            assert wire.ask(MetadataRequest(topics=[]), 9).brokers


def test_a_fault_that_was_never_met_is_told_at_the_end(upstream: tuple[str, int]) -> None:
    proxy = Proxy(upstream)
    proxy.faults.drop_answer("EndTxn")
    with pytest.raises(FaultNotMet, match=r"drop_answer\('EndTxn'\) was never met"):
        proxy.close()
    with pytest.raises(ConnectionRefusedError):
        Wire((HOST, proxy.port))
    proxy.close()


def test_a_client_that_comes_too_early_is_told_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with Proxy() as proxy:
        wire = Wire((HOST, proxy.port))
        with wire.socket:
            assert wire.is_closed()
    assert caplog.messages == ["a client has come to the proxy, which was not told its upstream yet"]
