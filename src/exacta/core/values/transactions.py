"""The phases of a transactional id, in the words of Kafka's coordinator."""

from enum import Enum


class Phase(Enum):
    """The state of a transactional id. Ending is one event, so nothing is ever half ended (decision D2)."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
