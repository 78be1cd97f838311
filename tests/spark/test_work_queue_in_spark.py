"""A micro-batch and the acknowledgements of a work queue end together in a real Spark: kill -9 at every step."""

import itertools
from typing import Any

import pytest
from confluent_kafka import Producer

from exacta.demo.checkpoints import read_progress
from exacta.demo.processes import BrokerProcess, free_port
from tests.shares import share_of
from tests.spark import faults
from tests.spark.clusters import check_exactly, new_topic
from tests.spark.lives import Lives, wait_until
from tests.spark.pipelines import Job
from tests.spark.work_queue import WorkQueue

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_800)]

STEPS = [
    "InitProducerIdRequest",
    "ProduceRequest",
    "TxnOffsetCommitRequest",
    "JoinTransactionRequest",
    "AcknowledgeMessagesRequest",
    "EndTransactionsRequest",
    faults.COMMITTED,
]
"""Where somebody is killed: the request is sent, and its sender has not got the answer."""
BATCH = 30
MESSAGES = 5
FIRST_MESSAGE = 1_000_000


class Campaign:
    """A query with a work queue, whose driver and whose broker are killed."""

    def __init__(self, broker, directory, deaths):
        self.broker, self.directory = broker, directory
        bootstrap = broker.bootstrap_servers
        self.queue = WorkQueue(bootstrap, broker.pulsar_url, new_topic(bootstrap, 1, "queue"))
        self.job = {
            "bootstrap": bootstrap,
            "source": new_topic(bootstrap, 2, "source"),
            "sink": new_topic(bootstrap, 3, "sink"),
            "checkpoint": str(directory / "checkpoint"),
            "faults": str(directory),
            "limit": BATCH,
            "work_queue": (broker.pulsar_url, self.queue.topic),
        }
        self.rows = self.messages = 0
        self.lives = Lives(directory, deaths=deaths)
        self.life: Any = None
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})

    def begin(self, *, alone):
        """Let the next driver begin, which writes its batches alone, or by tasks."""
        self.life = self.lives.begin(Job(**self.job, options={"driver.rows": "1000" if alone else "0"}))

    def feed(self):
        """Give the query the rows of a batch, and messages for its work queue."""
        self.queue.fill(range(FIRST_MESSAGE + self.messages, FIRST_MESSAGE + self.messages + MESSAGES))
        self.messages += MESSAGES
        for row in range(self.rows, self.rows + BATCH):
            self._producer.produce(self.job["source"], value=b"%d" % row)
        self.rows += BATCH
        assert self._producer.flush(60) == 0

    def halt(self, step):
        """Let somebody come to a step, and stand still there."""
        before = len(faults.struck(self.directory))
        faults.arm(self.directory, step)
        self.feed()
        self.wait(lambda: len(faults.struck(self.directory)) > before, step)
        return faults.struck(self.directory)[-1]

    def wait(self, happened, what):
        """Wait for an event; the driver lives on meanwhile."""

        def seen():
            self.life.check_alive()
            return happened()

        wait_until(seen, f"{what}; see {self.life.log}")

    def finish(self):
        """Let the query write all that there is; then check what became of it."""
        while True:
            self.wait(lambda: self._progress().offsets_done == self.rows, "all rows are written")
            if self.queue.counts() == (0, 0):
                break
            self.feed()  # messages that the last batch has not got are for a further one
        assert self.life.stop(), f"the last life did not end well, see {self.life.log}"
        messages = range(FIRST_MESSAGE, FIRST_MESSAGE + self.messages)
        check_exactly(self.job["bootstrap"], self.job["sink"], [*range(self.rows), *messages])

    def _progress(self):
        return read_progress(self.directory / "checkpoint")


@pytest.fixture
def begun(tmp_path):
    """Begin a campaign in which the driver dies this many times."""
    broker = BrokerProcess(tmp_path / "data", free_port(), tmp_path / "broker.log", free_port())
    broker.start()
    campaigns = []

    def begin(deaths):
        campaigns.append(Campaign(broker, tmp_path, deaths))
        return campaigns[-1]

    yield begin
    for each in campaigns:
        each.lives.end()
        each.queue.close()
    broker.stop()


def dealt(victim, alone):
    """Return the numbers and names of the steps at which this run kills a victim."""
    points = itertools.product(("Spark", "broker"), (True, False), range(len(STEPS)))
    steps = [(number, STEPS[number]) for *sweep, number in share_of(list(points)) if sweep == [victim, alone]]
    if not steps:
        pytest.skip("none of its steps is in this share")
    return steps


@pytest.mark.parametrize("first_alone", [True, False])
def test_spark_is_killed_at_every_step(begun, first_alone):
    """A driver that follows another goes on in the other way."""
    steps = dealt("Spark", first_alone)
    campaign = begun(len(steps))
    for number, step in steps:
        alone = (number % 2 == 0) is first_alone
        campaign.begin(alone=alone)
        campaign.halt(step)
        campaign.life.kill_tree(freeze_workers=False).kill()
    campaign.begin(alone=not alone)
    campaign.finish()


@pytest.mark.parametrize("alone", [True, False])
def test_the_broker_is_killed_at_every_step(begun, alone):
    steps = dealt("broker", alone)
    campaign = begun(0)
    campaign.begin(alone=alone)
    for _, step in steps:
        strike = campaign.halt(step)
        campaign.broker.kill()
        faults.release(campaign.directory, strike)
        campaign.broker.start()
    campaign.finish()
    assert campaign.lives.failures() == []
