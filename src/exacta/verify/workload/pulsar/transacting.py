"""Run Pulsar transactions alone: commit them, abort them, or leave them to their time-out.

An end is asked for until it is answered, over one connection after the other, because a repeat of the same end is
answered as the first one was. If a commit is refused, an acknowledged abort makes it certain: no broker aborts what it
has committed.
"""

import random
import threading
import time
from itertools import count

from exacta.verify.history import Begin, CommitAsked, End, Outcome
from exacta.verify.workload import plan as plans
from exacta.verify.workload.clients import CALL_S
from exacta.verify.workload.notes import Notes
from exacta.verify.workload.plan import Plan, PlannedEnd
from exacta.verify.workload.pulsar.side import Lost, Refused, Side
from exacta.verify.workload.spec import Spec

TIMEOUT_MS = 10_000
"""A transaction that nobody ends is over by then, long before the final read gives up waiting for it."""
_AGAIN_AFTER_S = 0.2


def transact(spec: Spec, notes: Notes, stop: threading.Event) -> None:
    """Make transfers until told to stop."""
    chance = random.Random(spec.seed)
    transactor = _Transactor(spec, notes)
    for number in count(1):
        if stop.is_set():
            break
        name = f"{spec.name}.{number}"
        if not transactor.run(name, plans.draw_transfer(chance, name, spec.topics)):
            stop.wait(_AGAIN_AFTER_S)
        stop.wait(chance.expovariate(spec.rate))
    transactor.close()


class _Transactor:
    """One Pulsar client with transactions."""

    def __init__(self, spec: Spec, notes: Notes) -> None:
        self._spec = spec
        self._notes = notes
        self._side = Side(spec.pulsar)

    def close(self) -> None:
        """Close its connection."""
        self._side.close()

    def run(self, name: str, plan: Plan) -> bool:
        """Run a transaction as planned; return whether the broker was there all the time."""
        spec, notes = self._spec, self._notes
        try:
            transaction = self._side.begin(TIMEOUT_MS)
        except (Lost, Refused):
            return False
        begin = Begin(
            process=spec.process,
            producer=spec.name,
            transactional_id="",
            transaction=name,
            at_us=notes.now_us(),
            records=plan.records,
        )
        notes.write(begin)
        offsets: list[int | None] = [None] * len(plan.records)
        try:
            for number, (topic, partition, value) in enumerate(plan.records):
                now_ms = int(time.time() * 1000)
                offsets[number] = self._side.send((topic, partition), value, transaction, now_ms)
        except (Lost, Refused) as error:
            self._end(name, offsets, committing=False, outcome=Outcome.UNKNOWN, error=str(error))
            return False
        if plan.end is PlannedEnd.ZOMBIE:
            self._end(name, offsets, committing=False, outcome=Outcome.UNKNOWN, error="left to its time-out")
            return True
        commit = plan.end is PlannedEnd.COMMIT
        if commit:
            notes.write(CommitAsked(process=spec.process, transaction=name, at_us=notes.now_us()))
        why_not = self._asked(transaction, commit=commit)
        if why_not and commit and not self._asked(transaction, commit=False):
            self._end(name, offsets, committing=False, outcome=Outcome.OK, error=why_not)
        else:
            outcome = Outcome.UNKNOWN if why_not else Outcome.OK
            self._end(name, offsets, committing=commit, outcome=outcome, error=why_not)
        return not why_not

    def _asked(self, transaction: int, *, commit: bool) -> str:
        """Ask for an end until it is answered; return why it is not done, or nothing."""
        deadline_s = time.monotonic() + CALL_S
        while True:
            try:
                self._side.end(transaction, commit=commit)
                return ""
            except Refused as error:
                return str(error)
            except Lost as error:
                if time.monotonic() > deadline_s:
                    return str(error)
                time.sleep(_AGAIN_AFTER_S)

    def _end(self, name: str, offsets: list[int | None], *, committing: bool, outcome: Outcome, error: str) -> None:
        end = End(
            process=self._spec.process,
            transaction=name,
            at_us=self._notes.now_us(),
            committing=committing,
            outcome=outcome,
            offsets=offsets,
            error=error,
        )
        self._notes.write(end)
