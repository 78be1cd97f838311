"""Random transfers over both protocols while the server is killed: balances add up, and each order is done once.

An order is a message of Pulsar's. A joint transaction takes it from its subscription, writes what is taken from one
account by Kafka's producer, and what another account gets by Pulsar's side. Chance decides who opens it, who ends it,
and when the server is killed: between any two steps, or while an end is on its way.
"""

import os
import random
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from exacta.client.errors import ClientError
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.conformance.brokers import HOST, free_port
from tests.one_log.clients import SECONDS
from tests.pulsar.joint import ABORT, COMMIT, Side, committed_of_kafka, committed_of_pulsar, join, kafka_producer, write
from tests.pulsar.serving import Served

ORDERS = 12
SEEDS = int(os.environ.get("EXACTA_TEST_JOINT_SEEDS", "1"))
KILLED = 0.06
"""The share of steps at which the server is killed."""
LOST = (ConnectionError, TimeoutError, OSError, KafkaException, ClientError)
"""The exceptions that a step may raise because of a kill."""


class Transfers:
    """One program, which begins an order anew until it is done."""

    def __init__(self, server: Served, bootstrap: str, seed: int) -> None:
        self.server = server
        self.bootstrap = bootstrap
        self.chance = random.Random(seed)
        self.kills = 0
        self.done: set[int] = set()
        """The numbers of the orders that are done."""
        self.producer: Producer = kafka_producer(bootstrap)
        self.side: Side | None = None
        self.sequence = 0

    def step(self) -> None:
        """Maybe kill the server, which is there again afterwards."""
        if self.chance.random() < KILLED:
            self.kill()

    def kill(self) -> None:
        self.kills += 1
        self.server.restart_killed()

    def open(self) -> Side:
        """Return Pulsar's side, connected anew where that was lost."""
        if self.side is None:
            self.side = Side(self.server.url)
            self.side.read("orders")
            self.side.open_producer("p")
        return self.side

    def lose(self) -> None:
        if self.side is not None:
            self.side.close()
            self.side = None

    def run(self) -> None:
        while len(self.done) < ORDERS:
            try:
                side = self.open()
                order, value = side.message()
            except LOST:
                self.lose()
                continue
            self.transfer(side, order, int(value))

    def transfer(self, side: Side, order: Any, number: int) -> None:
        transaction: int | None = None
        self.producer.begin_transaction()
        try:
            transaction = self.write_both(side, order, number)
            self.step()
        except LOST:
            self.lose()
            self.give_up(transaction)
            return
        self.end(transaction, number)

    def write_both(self, side: Side, order: Any, number: int) -> int:
        amount = self.chance.randint(1, 100)
        if self.chance.random() < 0.5:
            write(self.producer, "k", b"%d:%d" % (number, -amount))
            self.step()
            transaction = join(self.bootstrap)
        else:
            transaction = side.begin().txnid_least_bits
            self.step()
            join(self.bootstrap, transaction)
            write(self.producer, "k", b"%d:%d" % (number, -amount))
        self.step()
        self.sequence += 1
        receipt = side.produce(b"%d:%d" % (number, amount), sequence=self.sequence, transaction=transaction)
        assert isinstance(receipt, pb.CommandSendReceipt), receipt
        self.step()
        assert not side.acknowledge(order, transaction=transaction).HasField("error")
        return transaction

    def give_up(self, transaction: int | None) -> None:
        """Abort, by whichever side; a transaction of Pulsar's that is not joined yet is left to its time-out.

        If nobody knows whether the producer has joined one, the producer is made anew. That aborts what is open.
        """
        if transaction is not None and self.chance.random() < 0.5:
            self.asked(transaction, ABORT)
        self.producer.abort_transaction(SECONDS)
        if transaction is None:
            self.producer = kafka_producer(self.bootstrap)

    def end(self, transaction: int, number: int) -> None:
        killer = threading.Thread(target=self.kill) if self.chance.random() < 2 * KILLED else None
        if killer is not None:
            killer.start()
        is_ended_by_pulsar = self.chance.random() < 0.5
        try:
            if is_ended_by_pulsar:
                assert not self.asked(transaction, COMMIT).HasField("error")
            self.producer.commit_transaction(SECONDS)
        finally:
            if killer is not None:
                killer.join()
        assert number not in self.done, "an order is delivered again after its end"
        self.done.add(number)
        if killer is not None:
            self.lose()

    def asked(self, transaction: int, action: "pb.TxnAction") -> Any:
        """Ask for an end until it is answered, over one connection after the other."""
        while True:
            try:
                with closing(Side(self.server.url)) as asking:
                    return asking.end(transaction, action)
            except OSError:
                time.sleep(0.05)  # it is not there again


@pytest.mark.parametrize("buffer", ["marker", "sidecar"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_balances_add_up_and_each_order_is_done_once(tmp_path: Path, seed: int, buffer: str) -> None:
    port = free_port()
    server = Served(tmp_path / "data", tmp_path / "log", free_port(), port, transaction_buffer=buffer)
    bootstrap = f"{HOST}:{port}"
    with server:
        sender = Side(server.url)
        sender.open_producer("orders")
        for number in range(ORDERS):
            sender.produce(b"%d" % number, sequence=number)
        sender.close()
        transfers = Transfers(server, bootstrap, seed)
        transfers.run()
        transfers.lose()
        transfers.kill()
        taken = [tuple(map(int, each.split(b":"))) for each in committed_of_kafka(bootstrap, "k")]
        given = [tuple(map(int, each.split(b":"))) for each in committed_of_pulsar(server.url, "p")]
        assert sorted(number for number, _ in taken) == sorted(number for number, _ in given) == list(range(ORDERS))
        assert sorted((number, -amount) for number, amount in taken) == sorted(given)
