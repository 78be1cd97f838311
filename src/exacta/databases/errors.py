"""The errors of `exacta.two_phase`. Each message is one line."""


class TwoPhaseError(Exception):
    """A transaction over log and database did not take place, in neither of the two; the message says why."""


class TakenOver(TwoPhaseError):
    """Another instance has the transactional id now: this one is of no more use."""


class OutcomeUnknown(TwoPhaseError):
    """Nobody can say yet whether the transaction took place. It did in both or in neither; the next start decides."""


def one_line(error: BaseException) -> str:
    """Return what an error says, in one line: database drivers like to say more."""
    said = " ".join(str(error).split())
    return said or type(error).__name__
