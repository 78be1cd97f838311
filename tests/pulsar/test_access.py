"""Every command with each right that it needs, and with each of them missing (`access_cases.py`)."""

from typing import Any

import pytest

from exacta.ports.authorizer import Operation
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.pulsar.handlers import HANDLERS
from tests.pulsar.access_cases import CASES, Case, World, group, topic


def errors_of(answers: list[Any]) -> set[int]:
    """Return the errors that answers tell."""
    told = [(answer, name) for answer in answers for name in ("error", "error_code")]
    return {
        getattr(answer, name)
        for answer, name in told
        if name in answer.DESCRIPTOR.fields_by_name and answer.HasField(name)
    }


def outcome(case: Case, rights: Any) -> set[int]:
    """Return the errors that alice is told who has these rights alone."""
    world = World()
    world.allow(rights)
    found = errors_of(world.tell(case.build(world)))
    assert world.alice.closed is case.ends
    world.broker.end()
    return found


def named(case: Case) -> str:
    return f"{pb.BaseCommand.Type.Name(case.command)} {case.name}"


by_case = pytest.mark.parametrize("case", CASES, ids=named)


@by_case
def test_the_rights_of_a_case_are_enough(case: Case) -> None:
    assert outcome(case, case.rights) == set()
    assert case.rights or case.reason


@pytest.mark.parametrize(
    ("case", "missing"),
    [(case, right) for case in CASES for right in case.rights],
    ids=lambda value: (
        f"{pb.BaseCommand.Type.Name(value.command)} {value.name}" if isinstance(value, Case) else str(value)
    ),
)
def test_no_right_of_a_case_can_be_done_without(case: Case, missing: Any) -> None:
    rights = [each for each in case.rights if each != missing]
    error = pb.ServerError.TopicNotFound if missing == case.hides else case.error
    assert outcome(case, rights) == {error}


def test_every_command_has_a_case() -> None:
    assert {case.command for case in CASES} == HANDLERS.keys()


@by_case
def test_what_a_handler_declares_are_rights_of_its_cases(case: Case) -> None:
    kinds = {(need.operation, need.kind) for need in HANDLERS[case.command].needs}
    others = {right[:2] for each in CASES if each.command == case.command for right in each.rights}
    assert kinds <= others


@pytest.mark.parametrize("seen", [(), ("t",), ("t", "u")])
def test_a_list_leaves_out_what_the_client_may_not_see(seen: tuple[str, ...]) -> None:
    world = World()
    world.allow([topic(Operation.DESCRIBE, each) for each in seen])
    [answer] = world.tell(pb.CommandGetTopicsOfNamespace(namespace="public/default", request_id=6))
    assert list(answer.topics) == [f"persistent://public/default/{each}" for each in seen]


@pytest.mark.parametrize(
    "command",
    [
        pb.CommandProducer(topic="new", producer_id=3, request_id=7),
        pb.CommandSubscribe(
            topic="new", subscription="s", sub_type=pb.CommandSubscribe.Shared, consumer_id=3, request_id=7
        ),
    ],
    ids=["PRODUCER", "SUBSCRIBE"],
)
def test_nothing_is_opened_whose_right_goes_while_its_topic_is_made(command: Any) -> None:
    world = World()
    world.allow([topic(each, "new") for each in (Operation.WRITE, Operation.READ, Operation.CREATE)] + [group("s")])
    before = len(world.alice.connection.producers), len(world.alice.connection.consumers)
    world.broker.held_syncs = []
    world.alice.send(command)
    world.broker.settle()
    assert world.alice.answers() == []
    world.allow([])
    world.broker.release_syncs()
    world.broker.settle()
    assert errors_of(world.alice.answers()) == {pb.ServerError.AuthorizationError}
    assert (len(world.alice.connection.producers), len(world.alice.connection.consumers)) == before
    world.broker.end()
