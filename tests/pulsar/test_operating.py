"""`exacta subscriptions` and `exacta transactions` beside Pulsar's own client for Python."""

import time

import pulsar
from typer.testing import CliRunner

import exacta
from exacta.cli.app import app
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.wire import ANSWER_SECONDS, Wire, client

TOPIC = "persistent://acme/shop/orders"


def run(broker: exacta.Broker, *arguments: str) -> list[str]:
    done = CliRunner().invoke(app, [*arguments, "--bootstrap-server", broker.bootstrap_servers])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def wait_for(broker: exacta.Broker, line: str) -> list[str]:
    """Describe the subscription until it is described so."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while line not in (lines := run(broker, "subscriptions", "describe", TOPIC, "billing")):
        assert time.monotonic() < deadline, lines
    return lines


def test_an_operator_sees_what_a_consumer_has_and_lets_it_begin_again(broker: exacta.Broker) -> None:
    with client(broker.pulsar_url) as opened:
        consumer = opened.subscribe(
            TOPIC, "billing", consumer_type=pulsar.ConsumerType.Shared, consumer_name="w1", receiver_queue_size=100
        )
        producer = opened.create_producer(TOPIC, batching_enabled=False)
        for number in range(3):
            producer.send(b"%d" % number)
        got = [consumer.receive(ANSWER_SECONDS * 1_000) for _ in range(3)]
        consumer.acknowledge(got[1])
        lines = wait_for(broker, "  acknowledged beyond the position: 1")
        assert "  backlog 2, pending 0, held back 0 (uncommitted 0)" in lines
        assert any(line.startswith("  consumer 'w1': ") and ", holds 2," in line for line in lines)
        assert run(broker, "subscriptions", "list", "--topic", TOPIC)[1].split() == [
            *("pulsar..acme..shop..orders-0", "billing", "Shared", "1", "0", "2")
        ]
        moved = run(broker, "subscriptions", "reset", TOPIC, "billing", "--to", "2", "--yes")
        assert moved[0] == "pulsar..acme..shop..orders-0: from 0 to 2, and disconnects 1 consumer"
        assert consumer.receive(ANSWER_SECONDS * 1_000).data() == b"2"


def test_an_operator_sees_who_reads_uncommitted_messages(broker: exacta.Broker) -> None:
    wire = Wire(broker.pulsar_url)
    wire.open_producer(TOPIC)
    metadata = [pb.KeyValue(key="isolation.level", value="read_uncommitted")]
    reader = wire.session.subscribe(TOPIC, "billing", 1, durable=False, metadata=metadata)
    assert isinstance(wire.ask(reader), pb.CommandSuccess)
    wire.produce(b"open", transaction=wire.begin().txnid_least_bits)
    lines = run(broker, "subscriptions", "describe", TOPIC, "billing")
    assert ", subscription billing: Exclusive, not durable, reads uncommitted messages, created " in lines[0]
    assert "  backlog 1, pending 0, held back 0 (uncommitted 1)" in lines
    wire.close()


def test_an_operator_aborts_what_holds_a_consumer_back(broker: exacta.Broker) -> None:
    with client(broker.pulsar_url) as opened:
        consumer = opened.subscribe(TOPIC, "billing")
        wire = Wire(broker.pulsar_url)
        wire.open_producer(TOPIC)
        name = f"TxnID(0,{(transaction := wire.begin().txnid_least_bits)})"
        wire.produce(b"in the way", transaction=transaction)
        wire.produce(b"behind", sequence=1)
        lines = run(broker, "subscriptions", "describe", TOPIC, "billing")
        assert "  backlog 0, pending 0, held back 2 (uncommitted 1)" in lines
        assert lines[-1].startswith(f"  waits: {name} is open for ")
        for printed in (f"(0,{transaction})", f"{{0 {transaction}}}"):  # as the clients for Java and Go print it
            assert run(broker, "transactions", "explain", printed)[0].startswith(f"{name}: open for ")
        assert run(broker, "transactions", "abort", "--yes", f"(0,{transaction})")[-1] == f"{name} is aborted"
        assert consumer.receive(ANSWER_SECONDS * 1_000).data() == b"behind"
        wire.close()
