"""The errors of `exacta.two_phase`. Each message is one line.

`OutcomeUnknown` and `PartlyCommitted` are no `TwoPhaseError`s, so that a program which repeats what has failed does not
repeat these.
"""


class TwoPhaseError(Exception):
    """A transaction has taken place neither in the log nor in the database; the message says why."""


class TakenOver(TwoPhaseError):
    """Another instance has the transactional id now: this one is of no more use."""


class OutcomeUnknown(Exception):
    """Nobody can say yet whether the transaction took place. It did in both or in neither; the next start decides."""


class PartlyCommitted(Exception):
    """The block has ended the database's transaction itself: rows are in the database, and the messages are nowhere."""


def taken_over(transactional_id: str, reason: str) -> TakenOver:
    """Return the error for an instance that is fenced."""
    return TakenOver(f"another instance has taken over transactional id '{transactional_id}': {reason}")


def one_line(error: BaseException) -> str:
    """Return what an error says, in one line: database drivers like to say more."""
    said = " ".join(str(error).split())
    return said or type(error).__name__
