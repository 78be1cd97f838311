"""Every API asks the authorizer: who may not do something is told so, and neither does it nor learns of anything."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from exacta.kafka.handler import Handler
from exacta.kafka.handlers import HANDLERS
from exacta.kafka.needs import Each, Whole
from exacta.ports.authorizer import AllowAll
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k03_metadata,
    k20_delete_topics,
)
from exacta.readmodel.groups import AskLag
from exacta.readmodel.question import Question
from exacta.readmodel.subscriptions import AskSubscriptions
from exacta.readmodel.transactions import AskTransactions
from tests.kafka.access_cases import CASES, LISTS
from tests.kafka.access_requests import Names
from tests.kafka.access_rules import (
    ABSENT,
    GROUP,
    HIDDEN,
    ID,
    NONE,
    SEEN,
    TOPIC,
    Rules,
    about,
    but_hidden,
    codes,
    furnish,
    names,
    nothing,
    rule,
    state_of,
)
from tests.kafka.asking import question, refusal
from tests.kafka.wire import Front, Wire, front

OPEN_TO_ALL = {ApiKey.API_VERSIONS}


# --- declarations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=lambda handler: handler.name)
def test_each_handler_declares_its_needs_and_can_refuse(handler: Handler) -> None:
    assert (handler.needs == ()) == (handler.key in OPEN_TO_ALL)
    if any(isinstance(need, Each | Whole) for need in handler.needs):
        assert handler.can_refuse


def test_there_is_a_case_for_every_api() -> None:
    assert CASES.keys() == HANDLERS.keys()


# --- nothing is allowed -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def closed() -> Iterator[tuple[Front, Wire, Names, Any]]:
    """Run a broker at which nobody may do anything, furnished before."""
    with front(transaction_two_phase_commit_enable=True) as broker:
        wire, ids, bound = furnish(broker)
        rule(broker, Rules(nothing))
        yield broker, wire, names(HIDDEN, ids=ids, bound=bound), state_of(broker)


@pytest.mark.parametrize("key", CASES, ids=lambda key: key.name)
def test_a_client_without_rights_is_refused(key: ApiKey, closed: tuple[Front, Wire, Names, Any]) -> None:
    broker, wire, hidden, before = closed
    case, handler = CASES[key], HANDLERS[key]
    for version in range(handler.min_version, handler.max_version + 1):
        answer = wire.ask(case.build(version, hidden), version)
        told = _told(key, version, case.code)
        assert codes(answer) == told, version
        absent = wire.ask(case.build(version, names(ABSENT)), version)
        assert state_of(broker) == before, "nothing was done"
        if told and not _by_topic_id(key, version):
            assert _named_alike(answer, hidden) == _named_alike(absent, hidden), "nor was it told whether it is there"
        if not told:
            assert HIDDEN not in repr(answer)


def _told(key: ApiKey, version: int, code: ErrorCode | None) -> set[int]:
    """Return the codes that the answer has room for in this version."""
    if code is None:
        return set()
    if key is ApiKey.DESCRIBE_LOG_DIRS and version < 3:
        return set()  # it is empty
    if key is ApiKey.ADD_PARTITIONS_TO_TXN and version >= 4:
        return {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}  # that is a broker's request
    if key is ApiKey.END_TRANSACTIONS:
        return {code, ErrorCode.OPERATION_NOT_ATTEMPTED}
    return {code}


def _by_topic_id(key: ApiKey, version: int) -> bool:
    """Return whether the request names topics by ids: one that no topic has is told to be unknown, as Apache Kafka."""
    by_id = {(ApiKey.PRODUCE, 13), (ApiKey.ACKNOWLEDGE_MESSAGES, 0)}
    return (key, version) in {*by_id, *((ApiKey.FETCH, version) for version in range(13, 19))}


def _named_alike(answer: Any, hidden: Names) -> str:
    """Return the answer with the name and the id of a topic that is not there, which the request may have said."""
    absent_id = names(ABSENT).topic_id(f"{ABSENT}-t")
    text = repr(answer).replace(HIDDEN, ABSENT).replace(repr(hidden.topic_id(f"{HIDDEN}-t")), repr(absent_id))
    return re.sub(r"<memory at \w+>", "", text)


# --- one of two is allowed --------------------------------------------------------------------------------------------


ONE_OF_TWO = [
    # API, version, which of the names it is about, its code
    (ApiKey.PRODUCE, 11, "t", TOPIC),
    (ApiKey.FETCH, 12, "t", TOPIC),
    (ApiKey.LIST_OFFSETS, 7, "t", TOPIC),
    (ApiKey.METADATA, 9, "t", TOPIC),
    (ApiKey.OFFSET_COMMIT, 8, "t", TOPIC),
    (ApiKey.OFFSET_FETCH, 7, "t", TOPIC),
    (ApiKey.OFFSET_FETCH, 8, "g", GROUP),
    (ApiKey.FIND_COORDINATOR, 4, "g", GROUP),
    (ApiKey.DESCRIBE_GROUPS, 5, "g", GROUP),
    (ApiKey.CREATE_TOPICS, 7, "t-new", TOPIC),
    (ApiKey.DELETE_TOPICS, 5, "t", TOPIC),
    (ApiKey.DELETE_TOPICS, 6, "t", TOPIC),
    (ApiKey.DELETE_RECORDS, 2, "t", TOPIC),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, "t", TOPIC),
    (ApiKey.TXN_OFFSET_COMMIT, 4, "t", TOPIC),
    (ApiKey.DESCRIBE_CONFIGS, 4, "t", TOPIC),
    (ApiKey.ALTER_CONFIGS, 2, "t", TOPIC),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, "t", TOPIC),
    (ApiKey.CREATE_PARTITIONS, 3, "t", TOPIC),
    (ApiKey.OFFSET_DELETE, 0, "t", TOPIC),
    (ApiKey.DESCRIBE_PRODUCERS, 0, "t", TOPIC),
    (ApiKey.DESCRIBE_TRANSACTIONS, 0, "x", ID),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, "t", TOPIC),
    (ApiKey.RESET_SUBSCRIPTION, 0, "t", TOPIC),
]


@pytest.mark.parametrize(("key", "version", "suffix", "code"), ONE_OF_TWO, ids=lambda value: getattr(value, "name", ""))
def test_one_of_two_is_refused(
    half_open: tuple[Front, Wire, Names], key: ApiKey, version: int, suffix: str, code: ErrorCode
) -> None:
    _, wire, both = half_open
    if suffix == "g":
        both = msgspec.structs.replace(both, topics=both.topics[:1])
    answer = wire.ask(CASES[key].build(version, both), version)
    assert codes(about(answer, f"{HIDDEN}-{suffix}")) == {code}
    assert codes(about(answer, f"{SEEN}-{suffix}")) == set()


def test_each_array_of_resources_is_tried_with_one_that_is_refused() -> None:
    tried = {key for key, *_ in ONE_OF_TWO} | set(ALL_OR_NONE) | {ApiKey.DELETE_GROUPS, ApiKey.CONSUMER_GROUP_DESCRIBE}
    assert {key for key, handler in HANDLERS.items() if any(isinstance(need, Each) for need in handler.needs)} <= tried


ALL_OR_NONE = (ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.END_TRANSACTIONS)


def test_partitions_are_added_all_or_none(half_open: tuple[Front, Wire, Names]) -> None:
    broker, wire, both = half_open
    before = state_of(broker)
    answer = wire.ask(CASES[ApiKey.ADD_PARTITIONS_TO_TXN].build(3, both), 3)
    assert codes(about(answer, f"{HIDDEN}-t")) == {TOPIC}
    assert codes(about(answer, f"{SEEN}-t")) == {ErrorCode.OPERATION_NOT_ATTEMPTED}
    assert state_of(broker) == before


def test_transactions_end_all_or_none(half_open: tuple[Front, Wire, Names]) -> None:
    broker, wire, both = half_open
    before = state_of(broker)
    answer = wire.ask(CASES[ApiKey.END_TRANSACTIONS].build(0, both), 0)
    assert answer.error_code == ErrorCode.OPERATION_NOT_ATTEMPTED
    assert [(each.transactional_id, each.error_code) for each in answer.refused] == [(f"{HIDDEN}-x", ID)]
    assert state_of(broker) == before


def test_groups_are_deleted_as_far_as_the_client_may(half_open: tuple[Front, Wire, Names]) -> None:
    broker, wire, both = half_open
    for transactional_id in both.transactional_ids:  # their offsets are pending
        rule(broker, AllowAll())
        wire.ask(CASES[ApiKey.END_TXN].build(4, msgspec.structs.replace(both, transactional_ids=[transactional_id])), 4)
    rule(broker, Rules(but_hidden))
    answer = wire.ask(CASES[ApiKey.DELETE_GROUPS].build(2, both), 2)
    assert {each.group_id: each.error_code for each in answer.results} == {f"{SEEN}-g": NONE, f"{HIDDEN}-g": GROUP}


@pytest.mark.parametrize(
    ("key", "version"),
    [(ApiKey.PRODUCE, 13), (ApiKey.FETCH, 13), (ApiKey.OFFSET_COMMIT, 10), (ApiKey.OFFSET_FETCH, 10)],
)
def test_topics_named_by_their_ids(half_open: tuple[Front, Wire, Names], key: ApiKey, version: int) -> None:
    _, wire, both = half_open
    answer = wire.ask(CASES[key].build(version, msgspec.structs.replace(both, groups=[f"{SEEN}-g"])), version)
    assert codes(about(answer, both.ids[f"{HIDDEN}-t"])) == {TOPIC}
    assert codes(about(answer, both.ids[f"{SEEN}-t"])) == set()


def test_the_name_of_a_topic_is_not_told_for_its_id(half_open: tuple[Front, Wire, Names]) -> None:
    _, wire, both = half_open
    topics = [k20_delete_topics.DeleteTopicState(topic_id=topic_id) for topic_id in both.ids.values()]
    described = wire.ask(
        k03_metadata.MetadataRequest(
            topics=[k03_metadata.MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in both.ids.values()]
        ),
        12,
    )
    assert [(each.error_code, each.name) for each in described.topics] == [(NONE, f"{SEEN}-t"), (TOPIC, None)]
    deleted = wire.ask(k20_delete_topics.DeleteTopicsRequest(topics=topics), 6)
    assert {(each.error_code, each.name) for each in deleted.responses} == {(NONE, f"{SEEN}-t"), (TOPIC, None)}


@pytest.mark.parametrize("name", [f"{SEEN}-t", f"{HIDDEN}-t"])
def test_a_name_beside_an_id_gives_no_right(half_open: tuple[Front, Wire, Names], name: str) -> None:
    broker, wire, both = half_open
    topics = [k20_delete_topics.DeleteTopicState(name=name, topic_id=topic_id) for topic_id in both.ids.values()]
    before = state_of(broker)
    answer = wire.ask(k20_delete_topics.DeleteTopicsRequest(topics=topics), 6)
    told = {each.topic_id: (each.error_code, each.name) for each in answer.responses}
    seen, hidden = both.ids[f"{SEEN}-t"], both.ids[f"{HIDDEN}-t"]
    assert told == {seen: (ErrorCode.INVALID_REQUEST, name), hidden: (TOPIC, name)}
    assert state_of(broker) == before


@pytest.mark.parametrize("key", LISTS, ids=lambda key: key.name)
def test_a_list_leaves_out_what_the_client_may_not_see(half_open: tuple[Front, Wire, Names], key: ApiKey) -> None:
    _, wire, _ = half_open
    version = HANDLERS[key].max_version if key is not ApiKey.OFFSET_FETCH else 9
    answer = wire.ask(LISTS[key](f"{SEEN}-g"), version)
    assert codes(answer) == set()
    assert HIDDEN not in repr(answer)
    assert f"{SEEN}-" in repr(answer)


ABOUT_ONE: list[tuple[Callable[[str], Question], ErrorCode]] = [
    (lambda word: AskTransactions(transactional_ids=(f"{word}-x",)), ID),
    (lambda word: AskLag(group=f"{word}-g"), GROUP),
    (lambda word: AskSubscriptions(topics=(f"{word}-t",), has_details=True), TOPIC),
]


@pytest.mark.parametrize(("about_one", "code"), ABOUT_ONE, ids=lambda value: getattr(value, "name", ""))
def test_a_question_about_what_is_hidden_is_refused(
    half_open: tuple[Front, Wire, Names], about_one: Callable[[str], Question], code: ErrorCode
) -> None:
    _, wire, _ = half_open
    assert refusal(wire, about_one(HIDDEN)) == code
    told = wire.ask(question(about_one(SEEN)), 0)
    assert told.error_code == NONE
    assert HIDDEN.encode() not in told.answer
    assert f"{SEEN}-t".encode() in told.answer


@pytest.mark.parametrize("asked", [AskTransactions(), AskSubscriptions(has_details=True)])
def test_a_question_about_all_leaves_out_what_is_hidden(half_open: tuple[Front, Wire, Names], asked: Question) -> None:
    _, wire, _ = half_open
    told = wire.ask(question(asked), 0)
    assert HIDDEN.encode() not in told.answer
    assert f"{SEEN}-t".encode() in told.answer


def test_a_page_of_topics_does_not_end_at_one_that_is_hidden(half_open: tuple[Front, Wire, Names]) -> None:
    _, wire, _ = half_open
    answer = wire.ask(
        msgspec.structs.replace(LISTS[ApiKey.DESCRIBE_TOPIC_PARTITIONS](""), response_partition_limit=1), 0
    )
    assert ([each.name for each in answer.topics], answer.next_cursor) == ([f"{SEEN}-t"], None)
