"""The threads on which the journal's jobs run."""

import threading

from exacta.adapters.local.worker import Worker


def test_jobs_that_wait_are_finished_and_later_ones_are_not_begun() -> None:
    """The event loop may still hold a callback that submits one, when another journal has the files already."""
    worker, may_end = Worker("w"), threading.Event()
    done: list[str] = []

    def first() -> None:
        may_end.wait(10)
        done.append("first")

    worker.submit(first)
    worker.submit(lambda: done.append("second"))
    closing = threading.Thread(target=worker.close)
    closing.start()
    may_end.set()
    closing.join()
    worker.submit(lambda: done.append("late"))
    assert done == ["first", "second"]
    assert not [each for each in threading.enumerate() if each.name.startswith("w-")]
