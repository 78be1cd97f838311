"""Differences that are meant in what groups answer (see `differences.py`)."""

from __future__ import annotations

from exacta.kafka.handlers.k09_offset_fetch import NO_OFFSET, STORED_OFFSET
from tests.differential.answered import Answered, History
from tests.differential.calls import Answer
from tests.differential.machine import Difference
from tests.differential.members import CommitAsMember, DeleteGroups, DescribeGroup, FetchOffsets, Join, Leave, Sync
from tests.differential.membership import Leader, Led
from tests.differential.steps import CommitOffsets, PlainOffsets, ReadOffsets


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


def _answers_who_leaves(found: Answered, history: History) -> bool:
    if not isinstance(found.step, Leave):
        return False
    waited = {each for each in woken(found.ours) if each[1:] == ("UNKNOWN_MEMBER_ID", b"", None, None)}
    return bool(waited) and _without(found.ours, waited) == found.kafkas


def _names_all_that_is_unstable(found: Answered, history: History) -> bool:
    step = found.step
    if not (isinstance(step, FetchOffsets) and step.everything and step.stable):
        return False

    def stable(answer: Answer) -> Answer:
        return tuple(
            stable(part) if isinstance(part, tuple) else part
            for part in answer
            if not (isinstance(part, tuple) and part[-1:] == ("UNSTABLE_OFFSET_COMMIT",))
        )

    return found.kafkas == stable(found.kafkas) == stable(found.ours)


def _names_the_stored_offset(found: Answered, history: History) -> bool:
    return isinstance(found.step, FetchOffsets | ReadOffsets) and _as_kafka_says(found.ours) == found.kafkas


def _as_kafka_says(answer: Answer) -> Answer:
    """Return the answer with Kafka's offset beside UNSTABLE_OFFSET_COMMIT."""
    parts = tuple(_as_kafka_says(part) if isinstance(part, tuple) else part for part in answer)
    if "UNSTABLE_OFFSET_COMMIT" not in parts:
        return parts
    return tuple(NO_OFFSET if part == STORED_OFFSET else part for part in parts)


def _leaders(answer: Answer) -> set[str]:
    """Return who leads, as this answer tells anybody."""
    named = {part.name for part in answer if isinstance(part, Leader) and part.name}
    return named.union(*(_leaders(each) for each in woken(answer)))


def _leaderless(answer: Answer) -> Answer:
    return tuple(
        _leaderless(part) if type(part) is tuple else part for part in answer if not isinstance(part, Leader | Led)
    )


def _has_lost_its_leader(found: Answered, history: History) -> bool:
    group = getattr(found.step, "group", None)
    named = _leaders(found.kafkas) | _leaders(found.ours)
    before = [_leaders(each.ours) for each in history if getattr(each.step, "group", None) == group]
    last = next((leaders for leaders in reversed(before) if leaders), set())
    kafkas, ours = _leaderless(found.kafkas), _leaderless(found.ours)
    if isinstance(found.step, Leave):  # by which the leader has left, with others who wait
        kafkas, ours = _nameless(kafkas), _nameless(ours)
    return len(named) > 1 and not named & last and kafkas == ours


def _nameless(answer: Answer) -> Answer:
    """Return a Leave's answer without the names of those who waited and have left."""
    left = {each for each in woken(answer) if each[1] == "UNKNOWN_MEMBER_ID"}
    return (*_without(answer, left), *sorted(each[:3] + each[4:] for each in left))


def _names_who_has_left(found: Answered, history: History) -> bool:
    return isinstance(found.step, Leave) and _nameless(found.kafkas) == _nameless(found.ours)


def _since_it_was_deleted(group: str, history: History) -> History:
    for number in reversed(range(len(history))):
        if _deletes(history[number], group):
            return history[number + 1 :]
    return history


def _deletes(found: Answered, group: str) -> bool:
    step, answer = found.step, found.ours
    if not isinstance(step, DeleteGroups) or group not in step.groups:
        return False
    if all(isinstance(each, tuple) for each in answer):
        return any(name == group and each[1] == "NONE" for name, each in zip(step.groups, answer, strict=True))
    return set(answer) == {"NONE"}  # of a spoilt frame the codes are all that is told


def _refuses_the_first_of_a_group(found: Answered, history: History) -> bool:
    step = found.step
    return (
        isinstance(step, Join)
        and found.codes == ("INCONSISTENT_GROUP_PROTOCOL", "INCONSISTENT_GROUP_PROTOCOL")
        and found.ours[2:3] in ((), ("",))  # who presents an id does not make a group
        and not any(
            getattr(each.step, "group", None) == step.group
            and each.codes[1] in ("NONE", "MEMBER_ID_REQUIRED")
            and isinstance(each.step, Join | CommitOffsets | CommitAsMember | PlainOffsets)
            for each in _since_it_was_deleted(step.group, history)
        )
    )


def _joins_as_static_under_a_pending_id(found: Answered, history: History) -> bool:
    failed = ("UNKNOWN_SERVER_ERROR", "UNKNOWN_MEMBER_ID")
    return isinstance(found.step, Join) and found.step.instance is not None and found.codes == failed


def _names_nobody_who_is_fenced(found: Answered, history: History) -> bool:
    def unnamed(answer: Answer) -> Answer:
        kept = [(*each[:3], "", *each[4:]) if each[1] == "FENCED_INSTANCE_ID" else each for each in woken(answer)]
        return (*answer[:-1], ("woken", *kept)) if kept else answer

    differ = isinstance(found.step, Join) and found.kafkas != found.ours
    return differ and unnamed(found.kafkas) == unnamed(found.ours)


def _describes_who_took_over(found: Answered, history: History) -> bool:
    step = found.step
    if not isinstance(step, DescribeGroup):
        return False
    static = [
        each.step
        for each in _since_it_was_deleted(step.group, history)
        if isinstance(each.step, Join) and each.step.group == step.group and each.step.instance is not None
    ]
    taken_over = any(a.instance == b.instance and a.client != b.client for a in static for b in static)

    def without_clients(answer: Answer) -> Answer:
        return tuple((*part[:2], *part[3:]) if isinstance(part, tuple) else part for part in answer)

    return taken_over and without_clients(found.kafkas) == without_clients(found.ours)


GROUP_DIFFERENCES = (
    Difference(
        "A static member that another client has taken over while the group waited is described with that client's id; "
        "Kafka goes on with the first one's",
        _describes_who_took_over,
    ),
    Difference(
        "Whose successor comes while it waits is told that it is fenced; Kafka names its member id beside",
        _names_nobody_who_is_fenced,
    ),
    Difference(
        "Who was given a member id, and then joins under it as a static member, is unknown; Kafka fails",
        _joins_as_static_under_a_pending_id,
    ),
    Difference(
        "A member that asks again while its JoinGroup or SyncGroup waits: the earlier request is answered that it is "
        "overtaken; Kafka never answers it, and reads nothing more from its connection",
        _answers_who_asks_again,
    ),
    Difference(
        "Who asks for all stable offsets learns of those that are pending only; Kafka leaves them out, and the reader "
        "takes the partition for new",
        _names_all_that_is_unstable,
    ),
    Difference(
        "Beside UNSTABLE_OFFSET_COMMIT there is the number that makes librdkafka ask again (decision 0021); Kafka says "
        "-1, and then librdkafka may take the partition for new",
        _names_the_stored_offset,
    ),
    Difference(
        "A member that leaves while its SyncGroup waits: that is answered, too; Kafka forgets it",
        _answers_who_leaves,
    ),
    Difference(
        "A member that leaves while its JoinGroup waits is told by its id that it is unknown, as everybody else is; "
        "Kafka leaves the id out, which is not read where there is an error",
        _names_who_has_left,
    ),
    Difference(
        "Where the leader has left, any other may lead; Kafka takes the first of a hash map, we the oldest",
        _has_lost_its_leader,
        parts=True,
    ),
    Difference(
        "Who is refused does not make a group; Kafka makes it before it looks at the protocols",
        _refuses_the_first_of_a_group,
        parts=True,
    ),
)
