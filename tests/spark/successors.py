"""A query that several drivers work at, side by side or one after the other, told step by step."""

from tests.spark import faults
from tests.spark.clusters import new_topic
from tests.spark.lives import MASTER, Lives, wait_until
from tests.spark.pipelines import Job
from tests.spark.queries import fill

ROWS = 600


class Query:
    """A query of three batches, and the lives that it is given."""

    def __init__(self, bootstrap, directory, lives, *, master=MASTER, settings=None, **changes):
        """`changes`: other fields of the job."""
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
            **changes,
        }
        fill(bootstrap, self.job["source"], range(ROWS))
        self.lives = Lives(directory, deaths=lives - 1, master=master, settings=settings)

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


def ended(life):
    """Wait until a life has ended by itself; return what its query failed with, if it did."""
    assert life.wait(120), f"does not end; see {life.log}"
    return "".join(life.failures())
