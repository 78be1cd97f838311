"""Several drivers of one query: side by side on one checkpoint, or one after the other when its time is up."""

import pytest

from tests.spark import faults
from tests.spark.clusters import check_exactly, held_back, new_topic, read_committed
from tests.spark.lives import Lives, wait_until
from tests.spark.pipelines import Job
from tests.spark.queries import fill

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ROWS = 600
ENDED_BY_ANOTHER = "was ended before its batch was decided: by another run of the query"
SHORT_MS = "4000"  # for a transaction; longer than a batch takes on a busy machine


class Query:
    """A query of three batches, and the lives that it is given."""

    def __init__(self, bootstrap, directory, lives):
        self.bootstrap, self.directory = bootstrap, directory
        self.sink = new_topic(bootstrap, 3, "sink")
        self.job = {
            "bootstrap": bootstrap,
            "source": new_topic(bootstrap, 2, "source"),
            "sink": self.sink,
            "checkpoint": str(directory / "checkpoint"),
            "faults": str(directory),
            "limit": ROWS // 3,
            "available_now": True,
            "restarts": False,
        }
        fill(bootstrap, self.job["source"], range(ROWS))
        self.lives = Lives(directory, deaths=lives - 1)

    def begin(self, **changes):
        return self.lives.begin(Job(**{**self.job, **changes}))

    def begin_and_halt(self, point, **changes):
        """Let a driver come to a point and stand still there; return it, and who stands still."""
        before = len(faults.struck(self.directory))
        faults.arm(self.directory, point)
        life = self.begin(**changes)

        def has_struck():
            life.check_alive()
            return len(faults.struck(self.directory)) > before

        wait_until(has_struck, f"the query comes to {point!r}; see {life.log}")
        return life, faults.struck(self.directory)[-1]


@pytest.fixture
def query(bootstrap, tmp_path):
    made = Query(bootstrap, tmp_path, lives=3)
    yield made
    made.lives.end()


def ended(life):
    """Wait until a life has ended by itself; return what its query failed with, if it did."""
    assert life.wait(120), f"does not end; see {life.log}"
    return "".join(life.failures())


def test_two_drivers_at_once_on_one_checkpoint(query):
    first, standing = query.begin_and_halt(faults.ALL_TASKS_DONE)
    second, standing_too = query.begin_and_halt(faults.DECIDED)
    # The first may not decide any more, and says why.
    faults.release(query.directory, standing)
    assert ENDED_BY_ANOTHER in ended(first)
    # What the second has decided, a third one ends; the second then finds it ended as it wished, and the files taken.
    third = query.begin()
    assert ended(third) == ""
    faults.release(query.directory, standing_too)
    ended(second)
    check_exactly(query.bootstrap, query.sink, range(ROWS))


def test_a_driver_that_stays_away_for_longer_than_its_transactions_may(query):
    short = {"options": {"kafka.transaction.timeout.ms": SHORT_MS}}
    for point in (faults.ALL_TASKS_DONE, faults.BEFORE_THE_ENDS):
        before = len(read_committed(query.bootstrap, query.sink, settled=False))
        life, _ = query.begin_and_halt(point, **short)
        life.kill_tree(freeze_workers=False).kill()
        # Readers stand still, until the broker aborts what nobody ends; and then they see nothing of the batch.
        wait_until(lambda: held_back(query.bootstrap, query.sink) == {}, "the broker aborts what is open")
        assert len(read_committed(query.bootstrap, query.sink)) == before
    assert ended(query.begin()) == ""
    check_exactly(query.bootstrap, query.sink, range(ROWS))
