"""Topics that are created because somebody asked for them."""

from exacta.core.rejections import Rejection
from exacta.front.topics import create_missing
from tests.front.rig import Rig


def create(rig: Rig, *names: str) -> dict[str, Rejection]:
    """Create and return the refusals, which must come."""
    answers: list[dict[str, Rejection]] = []
    create_missing(rig.broker, rig.request, names, answers.append)
    rig.loop.settle()
    [refusals] = answers
    return refusals


def test_what_is_missing_is_created_with_fresh_ids_and_the_partitions_of_the_configuration() -> None:
    rig = Rig(num_partitions=3)
    assert create(rig, "a", "b") == {}
    topics = rig.engine._state.topics
    assert {name: topic.partition_count for name, topic in topics.items()} == {"a": 3, "b": 3}
    assert [topics[name].topic_id[-1] for name in ("a", "b")] == [1, 2]


def test_what_is_there_stays_and_is_answered_at_once() -> None:
    rig = Rig()
    create(rig, "a")
    answers: list[dict[str, Rejection]] = []
    create_missing(rig.broker, rig.request, ["a"], answers.append)
    assert answers == [{}]
    assert rig.entropy.draws == 1


def test_two_who_ask_at_once_both_find_it() -> None:
    rig = Rig()
    answers: list[dict[str, Rejection]] = []
    for _ in range(2):
        create_missing(rig.broker, rig.request, ["a"], answers.append)
    rig.loop.settle()
    assert answers == [{}, {}]
    assert list(rig.engine._state.topics) == ["a"]


def test_refusals_are_told_by_name_and_do_not_stop_the_others() -> None:
    rig = Rig(max_partitions=1)
    assert create(rig, "a", "b") == {"b": Rejection.INVALID_PARTITIONS}
    assert create(rig, "no\nname") == {"no\nname": Rejection.INVALID_TOPIC}


def test_a_bug_in_the_callback_harms_its_own_request_only() -> None:
    rig = Rig()

    def broken(refusals: object) -> None:
        raise RuntimeError("a bug")

    create_missing(rig.broker, rig.request, ["a"], broken)
    rig.loop.settle()
    assert rig.request.failures == 1
    assert create(rig, "b") == {}
