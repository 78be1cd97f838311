"""Several drivers of one query: side by side on one checkpoint, or one after the other when its time is up."""

import pytest

from tests.spark import faults
from tests.spark.clusters import check_exactly, held_back, read_committed
from tests.spark.lives import wait_until
from tests.spark.successors import ROWS, Query, ended

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

TAKEN_OVER = (
    "was taken over by a newer run of it",
    "was ended before its batch was decided: by another run of the query",
)
"""Decided and ended at once, the driver is refused; one by one, its tasks' transactions are gone."""
SHORT_MS = "4000"  # for a transaction; longer than a batch takes on a busy machine


@pytest.fixture
def query(bootstrap, tmp_path):
    made = Query(bootstrap, tmp_path, lives=3)
    yield made
    made.lives.end()


def test_two_drivers_at_once_on_one_checkpoint(query):
    first, standing = query.begin_and_halt(faults.ALL_TASKS_DONE)
    second, standing_too = query.begin_and_halt(faults.DECIDED)
    # The first may not decide any more, and says why.
    faults.release(query.directory, standing)
    failure = ended(first)
    assert any(sentence in failure for sentence in TAKEN_OVER)
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
