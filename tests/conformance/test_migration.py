"""A fleet moves from the classic protocol to KIP-848 while it works, and back: nobody stops, and nothing comes twice.

Members work in transactions: each record of the input is written once into the output, with the group's offsets. The
libraries that speak both protocols are the members of both kinds.
"""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conformance.clients import CLIENTS, AbortRequiredError, Consumer, TopicPartition
from tests.conformance.clients.interface import GroupProtocol
from tests.conformance.scenario import POLL_S, Scenario, send_all, values, wait_until

SPEAKERS = [client for client in CLIENTS if client.speaks_consumer_protocol]
pytestmark = pytest.mark.parametrize("client", SPEAKERS, ids=lambda client: client.name, indirect=True)
CLASSIC, CONSUMER = GroupProtocol.CLASSIC, GroupProtocol.CONSUMER
PARTITIONS = 6


class Fleet:
    """The processes of an application: consume, transform, produce, in transactions, while more input comes."""

    def __init__(self, scenario: Scenario) -> None:
        """Begin without any."""
        self.scenario = scenario
        self.source, self.target = scenario.topic(partitions=PARTITIONS), scenario.partition()
        self.group_id = scenario.new_name("group")
        self.workers: list[Worker] = []
        self.sent: list[bytes] = []
        self._producer = scenario.producer()

    def start(self, protocol: GroupProtocol) -> "Worker":
        """Start a process that speaks a protocol; return when it has a share of the work."""
        self.workers.append(worker := Worker(self, protocol))
        self.work(lambda: bool(worker.consumer.assignment()), f"a share for a new member that speaks {protocol.value}")
        return worker

    def stop(self, worker: "Worker") -> None:
        """Stop a process in good order; return when the others have all the work."""
        self.workers.remove(worker)
        worker.close()
        self.work(self.is_shared, "the others to have all partitions")

    def is_shared(self) -> bool:
        """Return whether each partition is somebody's."""
        owned = [partition for worker in self.workers for partition in worker.consumer.assignment()]
        return len(owned) == len(set(owned)) == PARTITIONS

    def work(self, until: Callable[[], bool], what: str) -> None:
        """Let all work side by side until the condition holds."""
        with ThreadPoolExecutor(len(self.workers)) as threads:

            def step() -> bool:
                self.sent += (some := values("v", 3, len(self.sent)))
                for number, value in enumerate(some):
                    partition = TopicPartition(self.source, (len(self.sent) + number) % PARTITIONS)
                    send_all(self._producer, partition, [value])
                list(threads.map(Worker.step, self.workers))
                return until()

            wait_until(step, what, 60.0)

    def finish(self) -> None:
        """Let the work be done; compare the output with the input."""

        def is_done() -> bool:
            return all(self._is_read(TopicPartition(self.source, number)) for number in range(PARTITIONS))

        sent = list(self.sent)
        wait_until(lambda: self._step_once() and is_done(), "all input to be moved", 60.0)
        assert Counter(self.scenario.read(self.target)) == Counter(sent)

    def _step_once(self) -> bool:
        with ThreadPoolExecutor(len(self.workers)) as threads:
            list(threads.map(Worker.step, self.workers))
        return True

    def _is_read(self, partition: TopicPartition) -> bool:
        end = self.scenario.high_watermark(partition)
        return any(
            partition in worker.consumer.assignment() and worker.consumer.position(partition) >= end
            for worker in self.workers
        )


class Worker:
    """One process."""

    def __init__(self, fleet: Fleet, protocol: GroupProtocol) -> None:
        """Join the group."""
        self._fleet, self._protocol = fleet, protocol
        self._producer = fleet.scenario.transactional()
        self.consumer = self._joined()

    def _joined(self) -> Consumer:
        scenario = self._fleet.scenario
        consumer = scenario.client.consumer(scenario.bootstrap, group_id=self._fleet.group_id, protocol=self._protocol)
        consumer.subscribe([self._fleet.source])
        return consumer

    def step(self) -> None:
        """Move what comes in one poll; a process whose transaction must be aborted starts again."""
        records = self.consumer.poll(POLL_S)
        if not records:
            return
        ends = {TopicPartition(each.topic, each.partition): each.offset + 1 for each in records}
        self._producer.begin()
        try:
            send_all(self._producer, self._fleet.target, [each.value or b"" for each in records])
            self._producer.send_offsets(ends, self.consumer.group_metadata())
            self._producer.commit()
        except AbortRequiredError:
            self._producer.abort()
            self.consumer.close()
            self.consumer = self._joined()

    def close(self) -> None:
        """Leave the group."""
        self.consumer.close()
        self._producer.close()


@pytest.fixture
def fleet(scenario: Scenario) -> Fleet:
    return Fleet(scenario)


def test_a_fleet_moves_to_the_consumer_protocol_while_it_works(fleet: Fleet) -> None:
    for old in [fleet.start(CLASSIC), fleet.start(CLASSIC)]:
        fleet.start(CONSUMER)
        fleet.stop(old)
    fleet.finish()


def test_a_fleet_moves_back_while_it_works(fleet: Fleet) -> None:
    for new in [fleet.start(CONSUMER), fleet.start(CONSUMER)]:
        fleet.start(CLASSIC)
        fleet.stop(new)
    fleet.finish()
