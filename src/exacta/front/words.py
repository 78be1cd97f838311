"""The words in which a client is told of a rejection, beside its protocol's own code."""

from collections.abc import Mapping
from typing import Final

from exacta.core.rejections import Rejection

_WITH_ADVICE: Final[Mapping[Rejection, str]] = {
    Rejection.LIMIT_REACHED: "a limit is reached; docs/reference/limits.md says which one, and what makes room",
    Rejection.PARTLY_STORED: "some messages of the batch are stored already, and others are not: send them one by one",
    Rejection.DISK_FULL: "the broker's disk is full, and takes no records until there is room",
    Rejection.RESERVE_USED_UP: "the broker's disk is full, and so is what was kept of it for commits",
    Rejection.TOO_MUCH_STAGED: (
        "open transactions have written as much to sidecar topics as max.staged.bytes allows; "
        "`exacta transactions list` shows how much each of them has"
    ),
}


def words_of(rejection: Rejection) -> str:
    """Return a rejection in words, with what to do about it where its name does not say that."""
    return _WITH_ADVICE.get(rejection) or rejection.name.lower().replace("_", " ")
