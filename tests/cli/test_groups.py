"""`exacta groups describe`, `lag`, `reset` and `delete`, on groups of librdkafka's consumers."""

import struct

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

from exacta.client.errors import KafkaError
from exacta.client.group_description import _assigned
from exacta.client.group_offsets import commit_offsets, fetch_offsets
from exacta.client.routing import Client
from exacta.client.transactions import TopicPartition


@pytest.fixture
def stands(bootstrap, topic):
    """Write five records into each partition, and let the group that is named like the topic stand behind two."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        producer.produce(topic, b"%d" % number, partition=number % 2, timestamp=1_767_225_600_000 + number)
    assert producer.flush(30) == 0
    del producer
    with Client(bootstrap) as client:
        commit_offsets(client, topic, {TopicPartition(topic, each): 2 for each in (0, 1)})
        yield lambda: [fetch_offsets(client, topic)[TopicPartition(topic, each)].offset for each in (0, 1)]


@pytest.fixture(params=["classic", "consumer"])
def member(request, bootstrap, topic):
    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "client.id": "me", "group.protocol": request.param}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.05)
    yield request.param
    consumer.close()


def test_a_group_is_described_with_its_members(run, topic, stands, member):
    found = run.found("groups", "describe", topic)
    assert (found["group"], found["protocol"], found["state"]) == (topic, member, "Stable")
    (only,) = found["members"]
    assert (only["client"], only["partitions"]) == ("me", [f"{topic}-0", f"{topic}-1"])
    assert [
        (each["committed_offset"], each["unread"], each["high_watermark"]) for each in found["lag"]["partitions"]
    ] == [(2, 3, 5)] * 2
    shown = run("groups", "describe", topic).splitlines()
    assert shown[0].startswith(f"group {topic}: Stable, {member} protocol, assignor ")
    assert shown[1].split()[:2] == ["member", "instance"]
    assert f"{topic}-0,{topic}-1" in shown[2]


def test_a_group_with_members_stays_as_it_is(run, topic, stands, member):
    refused = f"group {topic} has 1 member: end them first"
    assert run.refused("groups", "reset", topic, "--to", "earliest", "--yes") == refused
    assert run.refused("groups", "delete", topic, "--yes") == refused
    assert stands() == [2, 2]


@pytest.mark.parametrize(
    ("arguments", "new"),
    [
        (["--to", "earliest"], [0, 0]),
        (["--to", "latest"], [5, 5]),
        (["--to", "3", "-p", "1"], [2, 3]),
        (["--to", "99"], [5, 5]),
        (["--to", "-1"], [4, 4]),
        (["--to", "2026-01-01T00:00:00.004Z"], [2, 2]),
        (["--to", "s@1767225600007"], [4, 3]),
        (["--by", "1"], [3, 3]),
        (["--by", "-9"], [0, 0]),
    ],
)
def test_a_group_is_moved_when_that_was_shown(run, topic, stands, arguments, new):
    shown, told = run.both("groups", "reset", topic, *arguments, "--dry-run")
    assert told == "exacta: nothing was changed\n"
    for answer, code in (("n", 1), ("y", 0)):
        assert stands() == [2, 2]
        done, told = run.both("groups", "reset", topic, *arguments, typed=f"{answer}\n", code=code)
        assert done.startswith(shown)
        assert told.startswith(f"Move group {topic}? [y/N]:")
    assert stands() == new


def test_a_group_that_is_not_there_yet_is_given_a_place(run, topic, stands):
    moved = run.found("groups", "reset", f"{topic}-new", "--to", "latest", "--topic", topic, "--yes")
    assert [(each["partition"], each["from"], each["to"]) for each in moved] == [(0, None, 5), (1, None, 5)]
    found = run.found("groups", "lag", f"{topic}-new")
    assert [each["unread"] for each in found["partitions"]] == [0, 0]


def test_a_move_to_the_end_skips_nothing_that_is_open(run, topic, stands):
    producer = Producer({"bootstrap.servers": run.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(30) == 0
    run("groups", "reset", topic, "--to", "latest", "--yes")
    producer.commit_transaction(30)
    del producer
    assert stands() == [5, 5]
    consumer = Consumer({"bootstrap.servers": run.bootstrap, "group.id": topic})
    consumer.assign([Position(topic, 0)])
    assert consumer.poll(30).value() == b"open"
    consumer.close()


def test_groups_are_deleted_all_or_none(run, topic, stands):
    refused = run.refused("groups", "delete", topic, f"{topic}-no", "--yes")
    assert refused.startswith(f"there is no group {topic}-no; did you mean {topic}")
    assert run("groups", "delete", topic, typed="n\n", code=1).startswith(f"Delete {topic} with all positions?")
    assert {"group": topic, "state": "Empty", "protocol": None} in run.found("groups", "list")
    assert run("groups", "delete", topic, "--yes") == f"group {topic} is deleted\n"
    assert run.refused("groups", "describe", topic).startswith(f"there is no group {topic}")


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["describe", "no-such-group"], 1, "there is no group no-such-group"),
        (["reset", "no-such-group", "--to", "latest"], 1, "there is no group no-such-group"),
        (["reset", "GROUP", "--to", "latest", "--topic", "no-such"], 1, "there is no topic no-such"),
        (["reset", "GROUP", "--to", "latest", "-p", "7"], 1, "group GROUP has no position there"),
        (["reset", "GROUP", "--to", "soon"], 2, "--to: 'soon' is none of"),
        (["reset", "GROUP"], 2, "give one of --to and --by"),
        (["reset", "GROUP", "--to", "1", "--by", "1"], 2, "give one of --to and --by"),
    ],
)
def test_what_is_refused_is_told_in_one_line(run, topic, stands, arguments, code, why):
    named = [each.replace("GROUP", topic) for each in arguments]
    assert run.refused("groups", *named, code=code).startswith(why.replace("GROUP", topic))


def test_an_assignment_that_a_client_has_made_up_is_refused():
    sound = struct.pack(">hih1sii", 0, 1, 1, b"t", 1, 7)
    assert list(_assigned(sound)) == [TopicPartition("t", 7)]
    assert list(_assigned(b"")) == []
    for cut in range(1, len(sound)):
        with pytest.raises(KafkaError, match="an assignment of the group cannot be read"):
            list(_assigned(sound[:cut]))
