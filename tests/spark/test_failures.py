"""Queries that fail, are started again otherwise, or come too late: what is written all the same, and what is refused.

The driver's process lives on throughout; `test_kill.py` kills it, and `test_two_drivers.py` has two.
"""

import shutil

import pytest
from pyspark.errors import StreamingQueryException

from exacta.client.routing import Client
from exacta.client.transactions import list_transactions
from exacta.spark.sink.checkpoint import Checkpoint
from tests.spark import faults
from tests.spark.clusters import check_exactly, new_topic, tally
from tests.spark.lives import wait_until
from tests.spark.queries import fill, reading, run, writing
from tests.spark.shared_session import end_shared_session

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

ROWS = 1000
SHORT_MS = "4000"  # for a transaction; longer than a batch takes on a busy machine


class Query:
    """A query from one topic to another, whose writer comes to faults."""

    def __init__(self, spark, bootstrap, directory):
        self.spark, self.bootstrap, self.directory = spark, bootstrap, directory
        self.source, self.sink = new_topic(bootstrap, 2, "source"), new_topic(bootstrap, 3, "sink")
        self.checkpoint = directory / "checkpoint"
        fill(bootstrap, self.source, range(ROWS))

    def writer(self, *, tasks=2, **options):
        rows = reading(self.spark, self.bootstrap, self.source)
        rows = rows.repartition(tasks, "key") if tasks else rows
        options = {"topic": self.sink, "fault.directory": str(self.directory), **options}
        return writing(rows.select("key", "value"), self.bootstrap, self.checkpoint, form="faulty", **options)

    def run(self, **options):
        return run(self.writer(**options))

    def fail(self, match, **options):
        with pytest.raises(StreamingQueryException, match=match):
            self.run(**options)

    def run_until_timed_out(self, point, match, **options):
        """Run a query whose transactions are open for too long: somebody stands still at `point`."""
        faults.arm(self.directory, point)
        query = self.writer(**{"kafka.transaction.timeout.ms": SHORT_MS, **options}).start()
        wait_until(lambda: faults.struck(self.directory), "the query comes to the point")
        with Client(self.bootstrap) as client:
            ours = f"{Checkpoint(str(self.checkpoint)).query_id()}-"
            wait_until(lambda: not list_transactions(client, ours), "the broker aborts what is open")
        faults.release(self.directory, faults.struck(self.directory)[-1])
        with pytest.raises(StreamingQueryException, match=match):
            query.awaitTermination()

    def check(self):
        check_exactly(self.bootstrap, self.sink, range(ROWS))


@pytest.fixture
def query(spark, bootstrap, tmp_path):
    return Query(spark, bootstrap, tmp_path)


@pytest.fixture
def spent_session():
    """The session is not used any more.

    Where shuffle files are lost, Spark takes its only executor for lost. One in the driver's own process cannot
    register again, and ends the process when its heartbeats were refused for ten minutes.
    """
    yield
    end_shared_session()


@pytest.mark.usefixtures("spent_session")
def test_a_stage_that_is_run_again(query):
    """The shuffle files of a finished stage are lost while the stage that writes is under way: both are run again."""
    blocks = query.spark.conf.get("spark.local.dir")
    faults.arm(query.directory, faults.TASKS_WRITING, faults.LOSE, lost=f"{blocks}/**/shuffle_*")
    ran = query.run(tasks=6)
    context = query.spark.sparkContext
    stages = [
        stage
        for job in context.statusTracker().getJobIdsForGroup(str(ran.runId))
        for stage in context.statusTracker().getJobInfo(job).stageIds
    ]
    attempts = [context._jsc.sc().statusStore().lastStageAttempt(stage).attemptId() for stage in stages]
    assert max(attempts) > 0, "no stage was run again"
    query.check()


@pytest.mark.parametrize(
    "point", [None, faults.ALL_TASKS_DONE, faults.DECIDED, faults.BEFORE_THE_ENDS, faults.BETWEEN_THE_ENDS]
)
def test_started_again_with_another_number_of_tasks(query, point):
    if point is None:
        query.run(tasks=2)
        fill(query.bootstrap, query.source, range(ROWS, 2 * ROWS))
        query.run(tasks=5)
        check_exactly(query.bootstrap, query.sink, range(2 * ROWS))
        return
    faults.arm(query.directory, point, faults.RAISE)
    query.fail("because a test wants it to", tasks=3)
    query.run(tasks=5)
    query.check()


def test_timed_out_before_the_decision(query):
    query.run_until_timed_out(faults.ALL_TASKS_DONE, "was ended before its batch was decided")
    query.run()
    query.check()


def test_timed_out_after_the_decision(query):
    query.run_until_timed_out(faults.BEFORE_THE_ENDS, "were ended by someone else after the batch was decided")
    query.run()
    query.check()


def test_timed_out_in_part(query):
    """One is committed, one is not: only where the same rows come into the same tasks can the rest be repeated."""
    query.run_until_timed_out(
        faults.BETWEEN_THE_ENDS, "were ended by someone else after the batch was decided", tasks=None
    )
    query.fail("of batch 0, 1 of 2 transactions timed out", tasks=None)
    query.run(tasks=None, **{"replay.deterministic": "true"})
    query.check()


def test_a_checkpoint_that_is_deleted_makes_a_new_query(query):
    query.run()
    former = Checkpoint(str(query.checkpoint)).query_id()
    shutil.rmtree(query.checkpoint)
    query.run()
    assert Checkpoint(str(query.checkpoint)).query_id() != former
    # Which writes everything once more: nothing is skipped by what the former one has left behind.
    assert tally(query.bootstrap, query.sink, range(ROWS)) == (0, ROWS, 0)
