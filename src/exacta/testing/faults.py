"""The faults that a test asks for: what is armed, where it is met, and that none is forgotten.

Owns the table of faults and of the places where each is met. Knows neither connections (`faulty_connection.py`,
`proxy.py`) nor files (`faulty_files.py`). These ask at each of their places whether a fault is met there, and do what
it says. `fault_commands.py` is what a test calls.

Theory of operation. A fault is about a subject: the requests of one API, or the disk. Faults of one subject are met in
the order in which they were armed, one after the other, as often as each says. A fault that is armed and not met is an
error of the test, which `Armed.check` tells: a test that passes without its fault has shown nothing.

A fault may have an action, such as a restart of the broker. It runs in a thread of its own, since the broker's thread
must not wait for it.
"""

import contextlib
import threading
from collections.abc import Callable
from enum import Enum

DISK = "the disk"
"""The subject of the faults that no request meets."""

ACTION_TIMEOUT_S = 60.0
"""An action that takes longer hangs."""


class Place(Enum):
    """The places where faults are met."""

    REQUEST = "a request has come, and is not carried out yet"
    ANSWER = "an answer is there, and has not left yet"
    WRITE = "a commit group is about to be written"
    SYNC = "a commit group is about to be synced"


class Effect(Enum):
    """The kinds of faults."""

    CUT = "the request is lost, and the connection is closed"
    REFUSE = "the request is answered with an error code, and not carried out"
    DROP = "the request is carried out, and the connection is closed in place of the answer"
    DELAY = "the answer leaves later"
    FULL = "the write finds no space"
    SLOW = "the sync takes longer"
    CRASH = "the broker crashes before the sync"


MET_AT = {
    Effect.CUT: Place.REQUEST,
    Effect.REFUSE: Place.REQUEST,
    Effect.DROP: Place.ANSWER,
    Effect.DELAY: Place.ANSWER,
    Effect.FULL: Place.WRITE,
    Effect.SLOW: Place.SYNC,
    Effect.CRASH: Place.SYNC,
}
"""The place where each kind of fault is met."""


class FaultNotMet(AssertionError):
    """A fault was armed, and nothing came that met it."""


class Fault:
    """One fault. A test may wait for it; the broker's threads tell it what has happened."""

    def __init__(
        self,
        effect: Effect,
        subject: str,
        *,
        written: str,
        times: int = 1,
        seconds: float = 0.0,
        error_code: int = 0,
        action: Callable[[], object] | None = None,
    ) -> None:
        """`written` is the call that armed the fault, for messages."""
        if times < 1:
            raise ValueError(f"{written}: a fault is met once or more often, not {times} times")
        if seconds < 0:
            raise ValueError(f"{written}: nothing takes {seconds:g} seconds")
        self.effect = effect
        self.subject = subject
        self.times = times
        self.seconds = seconds
        self.error_code = error_code
        self.met = 0
        """The number of times that it was met."""
        self._written = written
        self._action = action
        self._error: BaseException | None = None
        self._over = threading.Event()

    def __str__(self) -> str:
        return self._written

    @property
    def happened(self) -> bool:
        """True once it was met as often as it says, and its action has run."""
        return self._over.is_set()

    def wait(self, timeout_s: float = ACTION_TIMEOUT_S) -> None:
        """Wait until it has happened. Raises FaultNotMet if it does not in time, and what its action raised."""
        if not self._over.wait(timeout_s):
            raise FaultNotMet(f"{self.told()}, in {timeout_s:g} s")
        self.raise_error()

    def raise_error(self) -> None:
        """Raise what its action raised."""
        if self._error is not None:
            raise self._error

    def act(self, then: Callable[[], object] | None = None) -> threading.Thread | None:
        """Do what belongs to it being met, and then call `then`: in a thread if there is an action, or here."""
        if self._action is not None:
            thread = threading.Thread(target=self._run, args=(then,), name="exacta-fault", daemon=True)
            thread.start()
            return thread
        self._end(then)
        return None

    def _run(self, then: Callable[[], object] | None) -> None:
        try:
            assert self._action is not None
            self._action()
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits or checks
            error.add_note(f"in the action of the fault {self}")
            self._error = error
        self._end(then)

    def _end(self, then: Callable[[], object] | None) -> None:
        if self.met >= self.times:
            self._over.set()  # before `then`, by which the client goes on: its test may look at once
        if then is not None:
            then()

    def told(self) -> str:
        """Return how far it was met, for a message."""
        if not self.met:
            return f"the fault {self} was never met"
        return f"the fault {self} was met {self.met} of {self.times} times"


class Armed:
    """The faults of one broker. The methods may be called from any thread."""

    def __init__(self) -> None:
        self._armed: list[Fault] = []
        self._acting: list[tuple[Fault, threading.Thread]] = []
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._armed)

    def add(self, fault: Fault) -> Fault:
        """Arm a fault."""
        with self._lock:
            self._armed.append(fault)
        return fault

    def meet(self, place: Place, subject: str = DISK) -> Fault | None:
        """Return the fault that is met here now; the caller must do what it says, and then call `act` with it."""
        if not self._armed:
            return None
        with self._lock:
            for fault in self._armed:
                if fault.subject == subject:
                    if MET_AT[fault.effect] is not place:
                        return None
                    fault.met += 1
                    if fault.met == fault.times:
                        self._armed.remove(fault)
                    return fault
        return None

    def act(self, fault: Fault, then: Callable[[], object] | None = None) -> None:
        """Run the action of a fault that was met, and call `then` afterwards."""
        thread = fault.act(then)
        if thread is not None:
            with self._lock:
                self._acting.append((fault, thread))

    def wait_for_actions(self) -> None:
        """Wait for the actions that run; a thread of one of them does not wait for itself."""
        with self._lock:
            acting = [thread for _, thread in self._acting if thread is not threading.current_thread()]
        for thread in acting:
            thread.join(ACTION_TIMEOUT_S)

    def clear(self) -> None:
        """Disarm what is armed, once the actions that run have ended."""
        with contextlib.suppress(Exception):
            self.check()

    def check(self) -> None:
        """Wait for the actions that run, and disarm everything.

        Raises FaultNotMet if something was armed, and what an action raised.
        """
        with self._lock:
            left, self._armed = self._armed, []
            acting, self._acting = self._acting, []
        for _, thread in acting:
            thread.join(ACTION_TIMEOUT_S)
        for fault, thread in acting:
            if thread.is_alive():
                raise TimeoutError(f"the action of the fault {fault} has not ended in {ACTION_TIMEOUT_S:g} s")
            fault.raise_error()
        __tracebackhide__ = True  # pytest shows the message and not how it came about
        if left:
            raise FaultNotMet("; ".join(fault.told() for fault in left))
