"""A client says whom it waits for, and gives up in time, while it cannot reach anybody."""

import logging
import socket

import pytest
from typer.testing import CliRunner

from exacta.cli import cluster as cli_cluster
from exacta.cli.app import app
from exacta.client import waiting
from exacta.client.deadline import Deadline
from exacta.client.errors import ConnectionLost, DeadlineExceeded, UnknownBootstrap
from exacta.client.routing import Client
from tests.client.secured import Script, ScriptedBroker
from tests.conformance.brokers import free_port


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(waiting, "SILENT_S", 0.05)


@pytest.fixture
def names(monkeypatch):
    """The error with which a look-up of any name ends."""

    def end_with(error):
        def getaddrinfo(host, *_, **__):
            raise error

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    return end_with


def said(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "exacta.client"]


def test_a_closed_port_is_said_once_and_tried_to_the_end(caplog):
    address = f"127.0.0.1:{free_port()}"
    with Client(address, call_timeout_ms=1_200) as client, pytest.raises(DeadlineExceeded):
        client.nodes()
    assert said(caplog) == [f"cannot connect to {address}: Connection refused; trying for 1 s more"]
    assert caplog.records[0].levelno == logging.WARNING, "what Python shows where nobody has set up logging"


def test_a_host_that_says_nothing_is_named_while_it_is_waited_for(caplog):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with Client(address, call_timeout_ms=1_200) as client, pytest.raises(DeadlineExceeded):
            client.nodes()
    assert said(caplog) == [f"{address} has not answered yet; trying for 1 s more"]


def test_the_next_call_says_it_again_after_one_that_gave_up(caplog):
    with Client(f"127.0.0.1:{free_port()}", call_timeout_ms=300) as client:
        for _ in range(2):
            with pytest.raises(DeadlineExceeded):
                client.nodes()
    assert len(said(caplog)) == 2


def test_nothing_is_said_where_somebody_answers(caplog, monkeypatch):
    monkeypatch.setattr(waiting, "SILENT_S", 60)  # a busy machine may take longer than a moment to answer
    with (
        ScriptedBroker(Script()) as broker,
        Client(f"127.0.0.1:{free_port()},{broker.address}", call_timeout_ms=5_000) as client,
    ):
        assert client.nodes() == [1]
        assert client._connections._waiting._timer is None, "nothing is going to be"
    assert said(caplog) == []


def test_bootstrap_servers_that_nobody_knows_end_the_call_at_once(names):
    names(socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
    with Client("kafka:9092,broker:9093") as client, pytest.raises(UnknownBootstrap) as refused:
        client.nodes()
    assert str(refused.value) == (
        "cannot connect to kafka:9092: this machine knows no host 'kafka' (Name or service not known); "
        "cannot connect to broker:9093: this machine knows no host 'broker' (Name or service not known)"
    )


def test_a_name_that_cannot_be_one_ends_the_call_at_once():
    with Client("a..b:9092") as client, pytest.raises(UnknownBootstrap, match=r"knows no host 'a\.\.b'"):
        client.nodes()


def test_a_name_service_that_is_away_is_waited_for(names):
    names(socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"))
    with Client("kafka:9092", call_timeout_ms=50) as client, pytest.raises(DeadlineExceeded, match="Temporary"):
        client.nodes()


def test_one_bootstrap_server_that_may_come_is_waited_for():
    with (
        Client(f"a..b:9092,127.0.0.1:{free_port()}", call_timeout_ms=50) as client,
        pytest.raises(DeadlineExceeded, match="gave up"),
    ):
        client.nodes()


def test_a_cluster_that_was_met_is_waited_for_whatever_the_names_say(names):
    with ScriptedBroker(Script()) as broker, Client(broker.address, call_timeout_ms=50) as client:
        assert client.nodes() == [1]
        client.close()
        names(socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
        with pytest.raises(ConnectionLost):
            client.refresh([], Deadline(50))


def test_an_address_that_only_the_cluster_gives_is_said_to_be_its_own():
    with ScriptedBroker(Script()) as broker, Client(broker.address) as client:
        assert client.nodes() == [1]
        client._topology.brokers[2] = ("a..b", 9092)
        with pytest.raises(ConnectionLost) as lost:
            client.broker(2, client.deadline())
    assert str(lost.value).startswith("cannot connect to a..b:9092: this machine knows no host 'a..b'")
    assert str(lost.value).endswith("; the cluster itself gives that address for broker 2")


def test_a_command_says_whom_it_waits_for(monkeypatch):
    monkeypatch.setattr(cli_cluster, "_CALL_TIMEOUT_MS", 1_200)
    address = f"127.0.0.1:{free_port()}"
    ended = CliRunner().invoke(app, ["groups", "lag", "g", "--bootstrap-server", address])
    assert ended.exit_code == 1
    assert ended.stderr == (
        f"exacta: cannot connect to {address}: Connection refused; trying for 1 s more\n"
        f"exacta: gave up after 1.2 s: cannot connect to {address}: Connection refused\n"
    )
