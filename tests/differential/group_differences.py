"""Differences that are meant in what groups answer (see `differences.py`)."""

from __future__ import annotations

from tests.differential.answered import Answered, Difference, History
from tests.differential.calls import Answer
from tests.differential.members import CommitAsMember, Join, Sync
from tests.differential.steps import CommitOffsets, PlainOffsets


def woken(answer: Answer) -> tuple[Answer, ...]:
    """Return what an answer's step has brought to those who waited: for each its step's number, and its answer."""
    last = answer[-1] if answer else ()
    return last[1:] if isinstance(last, tuple) and last[:1] == ("woken",) else ()


def _without(answer: Answer, gone: set[Answer]) -> Answer:
    kept = tuple(each for each in woken(answer) if each not in gone)
    own = answer[:-1] if woken(answer) else answer
    return (*own, ("woken", *kept)) if kept else own


def _answers_who_asks_again(found: Answered, history: History) -> bool:
    if not isinstance(found.step, Join | Sync):
        return False
    replaced = {each for each in woken(found.ours) if each[1] == "REBALANCE_IN_PROGRESS"}
    return bool(replaced) and _without(found.ours, replaced) == found.kafkas


def _refuses_the_first_of_a_group(found: Answered, history: History) -> bool:
    step = found.step
    return (
        isinstance(step, Join)
        and found.codes == ("INCONSISTENT_GROUP_PROTOCOL", "INCONSISTENT_GROUP_PROTOCOL")
        and found.ours[2] == ""  # who presents an id does not make a group
        and not any(
            getattr(each.step, "group", None) == step.group
            and each.codes[1] in ("NONE", "MEMBER_ID_REQUIRED")
            and isinstance(each.step, Join | CommitOffsets | CommitAsMember | PlainOffsets)
            for each in history
        )
    )


GROUP_DIFFERENCES = (
    Difference(
        "A member that asks again while its JoinGroup or SyncGroup waits: the earlier request is answered that it is "
        "overtaken; Kafka never answers it, and reads nothing more from its connection",
        _answers_who_asks_again,
    ),
    Difference(
        "Who is refused does not make a group; Kafka makes it before it looks at the protocols",
        _refuses_the_first_of_a_group,
        parts=True,
    ),
)
