"""`exacta produce` and `exacta consume`, on a broker, beside librdkafka."""

import errno
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

import exacta
from exacta.cli import produce
from exacta.client.group_offsets import fetch_offsets
from exacta.client.partitioner import partition_of_key
from exacta.client.routing import Client
from exacta.client.transactions import TopicPartition, list_transactions
from tests.cli.conftest import Commands
from tests.client.described import members_of
from tests.signals import heard
from tests.spark.clusters import new_topic, read_committed
from tests.waiting import wait_until


@pytest.fixture
def start(bootstrap):
    """Start commands as processes of their own; end them in the end."""
    started = []

    def begin(*arguments):
        with heard(signal.SIGINT):
            process = subprocess.Popen(
                [sys.executable, "-m", "exacta.cli", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=os.environ | {"EXACTA_BOOTSTRAP_SERVERS": bootstrap},
            )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def test_lines_are_records_for_everybody(run, topic):
    assert run.both(
        "produce",
        topic,
        typed="a:1\nb:2\n\nlast",
    ) == ("", f"exacta: 4 records written to {topic}\n")
    assert sorted(value for _, _, value in read_committed(run.bootstrap, topic)) == [b"", b"a:1", b"b:2", b"last"]
    assert sorted(run("consume", topic, "-e").splitlines()) == ["", "a:1", "b:2", "last"]


def test_keys_headers_and_nulls_arrive(run, topic):
    run("produce", topic, "-K", ":", "-Z", "-H", "n=v", "-H", "none", "-q", typed="a:1\nb:\n")
    consumer = Consumer({"bootstrap.servers": run.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    got = sorted((each.key(), each.value(), each.partition()) for each in consumer.consume(2, 30))
    assert got == [(key, value, partition_of_key(key, 2)) for key, value in ((b"a", b"1"), (b"b", None))]
    consumer.close()
    written = run("consume", topic, "-e", "-f", r"%k|%s|%S|%h\n", "-Z")
    assert sorted(written.splitlines()) == ["a|1|1|n=v,none=NULL", "b|NULL|-1|n=v,none=NULL"]
    assert sorted(run("consume", topic, "-e", "-K", "->").splitlines()) == ["a->1", "b->"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_both_sides_compress_as_librdkafka_does(run, topic, codec):
    run("produce", topic, "-z", codec, "-p", "0", typed="ours\n" * 50)
    theirs = Producer({"bootstrap.servers": run.bootstrap, "compression.type": codec})
    for _ in range(50):
        theirs.produce(topic, b"theirs", partition=1)
    assert theirs.flush(30) == 0
    del theirs
    assert [value for _, _, value in read_committed(run.bootstrap, topic)].count(b"ours") == 50
    assert run("consume", topic, "-e", "-p", "1") == "theirs\n" * 50


def test_json_copies_a_topic(run, topic):
    run("produce", topic, "-K:", typed="a:1\nb:2\n")
    copied = run("consume", topic, "-e", "-J")
    first = json.loads(copied.splitlines()[0])
    assert first.keys() == {"topic", "partition", "offset", "tstype", "ts", "key", "payload"}
    run("produce", f"{topic}-copy", "-J", typed=copied)
    again = run("consume", f"{topic}-copy", "-e", "-J")
    of = [
        sorted((each["key"], each["payload"], each["ts"]) for each in map(json.loads, text.splitlines()))
        for text in (copied, again)
    ]
    assert of[0] == of[1]


def test_a_part_of_a_topic_is_read(run, topic):
    for number in range(5):
        run("produce", topic, "-p", "0", "-q", typed=f"{number}\n")
    read = lambda *options: run("consume", topic, "-p", "0", *options).split()  # noqa: E731
    assert read("-e") == ["0", "1", "2", "3", "4"]
    assert read("-e", "-o", "-2") == ["3", "4"]
    assert read("-e", "-o", "-2", "-c", "9" * 20) == ["3", "4"]
    assert read("-e", "-o", "3") == ["3", "4"]
    assert read("-e", "-o", "end") == []
    assert read("-c", "2", "-o", "1") == ["1", "2"]
    third = json.loads(run("consume", topic, "-p", "0", "-J", "-o", "2", "-c", "1"))["ts"]
    fourth = json.loads(run("consume", topic, "-p", "0", "-J", "-o", "3", "-c", "1"))["ts"]
    assert read("-o", f"s@{third}", "-o", f"e@{fourth}") == ["2"]
    assert read("-o", "e@2100-01-01") == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_part_of_a_batch_is_read_by_its_times(run, topic, codec):
    producer = Producer({"bootstrap.servers": run.bootstrap, "linger.ms": 500, "compression.type": codec})
    for number in range(200):
        producer.produce(topic, b"%d" % number, partition=0, timestamp=1_767_225_600_000 + number)
    assert producer.flush(30) == 0
    found = run("consume", topic, "-p", "0", "-o", "s@1767225600050", "-o", "e@1767225600100").split()
    assert found == [str(number) for number in range(50, 100)]


def test_a_transaction_is_written_whole(run, topic):
    _, told = run.both("produce", topic, "--transactional-id", topic, "--commit-every", "2", typed="1\n2\n3\n")
    assert told == f"exacta: 3 records written to {topic}, committed in 2 transactions\n"
    refused = run.refused("produce", topic, "-J", "--transactional-id", topic, typed='{"payload": "4"}\n{\n')
    assert refused.startswith("line 2 is no JSON")
    assert sorted(run("consume", topic, "-e").split()) == ["1", "2", "3"]
    with Client(run.bootstrap) as client:
        assert list_transactions(client, topic) == []


def test_an_isolation_says_what_is_read(run, topic):
    producer = Producer({"bootstrap.servers": run.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    assert producer.flush(30) == 0
    assert run("consume", topic, "-e") == ""
    assert run("consume", topic, "-e", "--isolation", "read_uncommitted") == "open\n"
    producer.abort_transaction(30)
    del producer
    run("produce", topic, typed="after\n")
    assert run("consume", topic, "-e") == "after\n"


def test_a_group_goes_on_where_it_stands(run, topic):
    run("produce", topic, "-p", "0", typed="1\n2\n3\n")
    assert run("consume", topic, "--group", topic, "-c", "2") == "1\n2\n"
    assert run("consume", topic, "--group", topic, "-e") == "3\n"
    assert run("consume", topic, "--group", topic, "-e") == ""
    with Client(run.bootstrap) as client:
        assert fetch_offsets(client, topic)[TopicPartition(topic, 0)].offset == 3
    member = Consumer({"bootstrap.servers": run.bootstrap, "group.id": topic})
    member.subscribe([topic])
    while not member.assignment():
        member.poll(0.05)
    assert run("consume", topic, "--group", topic, "-e") == "", "the group moves to KIP-848's protocol and back"
    run("produce", topic, "-p", "0", typed="4\n")
    out, err = run.both("consume", topic, "-p", "0", "--group", topic, "-e", code=1)
    assert out == "4\n"
    assert err == f"exacta: group {topic} has members: only they commit for it; without -p this command is one\n"
    member.close()
    assert run("consume", topic, "-p", "0", "--group", topic, "-e") == "4\n"
    assert run("consume", topic, "--group", topic, "-e") == ""


def test_two_readers_of_a_group_share_the_partitions(start, run, topic):
    first = start("consume", topic, "--group", topic, "-f", r"%p %s\n")
    run("produce", topic, "-p", "0", typed="a\n")
    assert first.stdout.readline() == b"0 a\n"
    second = start("consume", topic, "--group", topic, "-f", r"%p %s\n")
    with Client(run.bootstrap) as client:
        wait_until(lambda: [len(each.partitions) for each in members_of(client, topic)] == [1, 1], 60)
    for partition in ("0", "1"):
        run("produce", topic, "-p", partition, typed="b\n")
    assert sorted(each.stdout.readline() for each in (first, second)) == [b"0 b\n", b"1 b\n"]
    with Client(run.bootstrap) as client:
        wait_until(lambda: sorted(each.offset for each in fetch_offsets(client, topic).values()) == [1, 2], 60)
        second.send_signal(signal.SIGINT)
        assert second.wait(30) == 0
        assert len(members_of(client, topic)) == 1
    first.send_signal(signal.SIGINT)
    assert first.wait(30) == 0
    assert run("consume", topic, "--group", topic, "-e") == ""


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["consume", "no-such"], 1, "there is no topic no-such"),
        (["consume", "TOPIC", "-p", "9"], 1, "topic TOPIC has no partition 9: it has 2"),
        (["consume", "TOPIC", "-o", "99"], 1, "TOPIC-0 has no offset 99: it has 0 up to 0"),
        (["consume", "TOPIC", "-e", "-o", "99"], 1, "TOPIC-0 has no offset 99: it has 0 up to 0"),
        (["consume", "TOPIC", "-o", "soon"], 2, "--offset: 'soon' is none of"),
        (["consume", "TOPIC", "-e", "-o", "e@5"], 2, "give one of --exit and -o e@TIME"),
        (["consume", "TOPIC", "--group", ""], 2, "--group: the name of a group is not empty"),
        (["consume", "TOPIC", "-f", "%q"], 2, "there is no %q"),
        (["consume", "TOPIC", "-J", "-K", ":"], 2, "give one of --format, --json and --key-delimiter"),
        (["produce", ""], 2, "the name of a topic is not empty"),
        (["produce"], 2, "name a topic: exacta produce"),
        (["produce", "TOPIC", "-t", "TOPIC"], 2, "name one topic: exacta produce"),
        (["consume", "-e"], 2, "name a topic: exacta consume"),
        (["consume", "TOPIC", "--from-beginning", "-o", "5"], 2, "--offset: '5' is a second start"),
        (["produce", "TOPIC", "-p", "9"], 1, "topic TOPIC has no partition 9: it has 2"),
        (["produce", "TOPIC", "-J", "-K", ":"], 2, "give one of --json, --key-delimiter and --key"),
        (["produce", "TOPIC", "-k", "a", "-K", ":"], 2, "give one of --json, --key-delimiter and --key"),
        (["produce", "TOPIC", "-D", ""], 2, "a delimiter is not empty"),
        (["produce", "TOPIC", "-D", r"\q"], 2, r"there is no escape \q"),
        (["produce", "TOPIC", "--commit-every", "2"], 2, "--commit-every needs --transactional-id"),
        (["produce", "TOPIC", "--transactional-id", ""], 2, "--transactional-id: the id is not empty"),
        (["produce", "TOPIC", "-H", "n=" + "x" * 2_000_000], 1, "max.message.bytes, 1048588"),
    ],
)
def test_what_is_refused_is_told_in_one_line(run, topic, arguments, code, why):
    refused = run.refused(*(each.replace("TOPIC", topic) for each in arguments), code=code, typed="x\n")
    assert why.replace("TOPIC", topic) in refused


@pytest.mark.parametrize("further", [[], ["-e"]])
def test_of_several_partitions_that_are_refused_the_first_one_is_told(run, bootstrap, further):
    topic = new_topic(bootstrap, 20)  # by the order of a set it would be any of them
    assert run.refused("consume", topic, "-o", "99", *further) == f"{topic}-0 has no offset 99: it has 0 up to 0"


def redirected(bootstrap, call):
    """Run a command as a shell does that redirects its streams; return its exit code and what it said."""
    done = subprocess.run(
        f"exec {sys.executable} -m exacta.cli {call}",
        shell=True,
        env=os.environ | {"EXACTA_BOOTSTRAP_SERVERS": bootstrap},
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("call", "code", "why"),
    [
        ("produce TOPIC <&-", 2, "stdin is closed: there is nothing to read"),
        ("produce TOPIC 0>>/dev/null", 1, "stdin cannot be read: Bad file descriptor"),
        ("consume TOPIC -e >&-", 2, "stdout is closed: there is nowhere to write"),
    ],
)
def test_streams_that_cannot_be_used_are_told_in_one_line(bootstrap, topic, call, code, why):
    assert redirected(bootstrap, call.replace("TOPIC", topic)) == (code, f"exacta: {why}\n")


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_line_is_sent_before_the_input_ends(start, run, topic, stop):
    writer, reader = start("produce", topic), start("consume", topic)
    for line in (b"first\n", b"second\n"):
        writer.stdin.write(line)
        writer.stdin.flush()
        assert reader.stdout.readline() == line
    reader.send_signal(stop)
    assert reader.communicate(timeout=30) == (b"", b"")
    assert reader.returncode == 0
    writer.stdin.close()
    assert writer.wait(30) == 0


def test_lines_that_come_on_and_on_are_sent_meanwhile(monkeypatch):
    ends = threading.Event()

    def read(chunks):
        while not ends.is_set():
            chunks.put(b"line\n")
        chunks.put(b"")

    monkeypatch.setattr(produce, "_read", read)
    monkeypatch.setattr(produce, "_LONGEST_S", 0.0)
    lines = produce._lines(b"\n")
    found = [next(lines) for _ in range(100)]
    ends.set()
    assert {each.text for each in lines if each} == {b"line"}
    assert None in found


def in_a_transaction(start, run, topic):
    """Return a process that has written a record in a transaction, and waits for more."""
    writer = start("produce", topic, "--transactional-id", topic)
    writer.stdin.write(b"never\n")
    writer.stdin.flush()
    with Client(run.bootstrap) as client:
        while not list_transactions(client, topic):
            assert writer.poll() is None
    return writer


def test_a_producer_that_is_fenced_is_told_where_to_look(start, run, topic):
    writer = in_a_transaction(start, run, topic)
    run("produce", topic, "--transactional-id", topic, typed="theirs\n")
    writer.stdin.close()
    assert writer.wait(60) == 1
    told = writer.stderr.read().decode()
    assert told.endswith(f": fenced, as `exacta transactions explain {topic}` tells\n")
    assert told.count("\n") == 1


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_aborts_the_transaction(start, run, topic, stop):
    writer = in_a_transaction(start, run, topic)
    writer.send_signal(stop)
    _, told = writer.communicate(timeout=30)
    assert (writer.returncode, told) == (1, b"exacta: interrupted: the transaction is aborted\n")
    with Client(run.bootstrap) as client:
        assert list_transactions(client, topic) == []
    assert run("consume", topic, "-e") == ""


def test_an_input_that_fails_is_told_after_what_it_has_held(monkeypatch):
    def read(descriptor, size):
        if held:
            return held.pop()
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    held = [b"held\n"]
    chunks: queue.Queue[Any] = queue.Queue()
    with monkeypatch.context() as patched:
        patched.setattr("exacta.cli.produce.os.read", read)
        with Path(__file__).open() as stdin:
            patched.setattr("sys.stdin", stdin)
            produce._read(chunks)
    assert chunks.get() == b"held\n"
    assert chunks.get().errno == errno.EIO
    assert chunks.empty()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_that_cannot_be_written_is_told(run, bootstrap, topic):
    run("produce", topic, typed="a\n")
    full = "exacta: the output cannot be written: No space left on device\n"
    assert redirected(bootstrap, f"consume {topic} -e > /dev/full") == (1, full)


def test_that_the_reader_has_enough_is_no_error(start, run, topic):
    run("produce", topic, typed="x" * 1000 + "\n" + "y\n" * 100_000)
    reader = start("consume", topic)
    reader.stdout.readline()
    reader.stdout.close()
    assert (reader.wait(30), reader.stderr.read()) == (0, b"")


def test_that_the_reader_has_enough_ends_it_though_no_further_record_comes(start, run, topic):
    run("produce", topic, typed="only\n")
    reader = start("consume", topic)
    assert reader.stdout.readline() == b"only\n"
    reader.stdout.close()
    assert (reader.wait(30), reader.stderr.read()) == (0, b"")


def test_a_topic_that_nobody_creates_is_told_soon(monkeypatch):
    monkeypatch.setattr(produce, "_CREATION_MS", 1_000)
    with exacta.Broker(auto_create_topics_enable=False) as broker:
        run = Commands(broker.bootstrap_servers)
        run("topics", "create", "orders")
        told = run.refused("produce", "ordres", typed="x\n")
    assert told == "the cluster creates no topics on demand, and has no topic ordres; did you mean orders?"


def test_kcats_and_kafkas_people_type_what_they_are_used_to(run, topic):
    run("produce", "-P", "-t", topic, "-p", "0", typed="1\n2\n")
    assert run("consume", "-C", "-t", topic, "-e", "-o", "beginning") == "1\n2\n"
    assert run("consume", "--topic", topic, "--from-beginning", "--max-messages", "1") == "1\n"
    assert run("consume", topic, "--from-beginning", "-o", "e@4102444800000") == "1\n2\n"
