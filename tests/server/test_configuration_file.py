"""The file of `exacta serve --config`: what its keys come to, and what is told of the others."""

from pathlib import Path

import pytest

from exacta.config.errors import ConfigurationError
from exacta.front.doors import Endpoint, TransportSecurity
from exacta.server.configuration_file import ConfigurationFile, read_configuration_file


def read(folder: Path, text: str, name: str = "server.properties") -> ConfigurationFile:
    file = folder / name
    file.write_text(text)
    return read_configuration_file(file)


def mistakes(folder: Path, text: str, name: str = "server.properties") -> list[str]:
    return [each.removeprefix(f"{folder}/") for each in read(folder, text, name).mistakes]


KAFKAS_OWN = """\
# Apache Kafka 4 ships this as config/server.properties, with comments, and with inter.broker.listener.name.
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_the_file_that_kafka_ships_is_taken_but_for_the_listener_of_other_brokers(tmp_path: Path) -> None:
    assert mistakes(tmp_path, KAFKAS_OWN + "inter.broker.listener.name=PLAINTEXT\n") == [
        "server.properties: inter.broker.listener.name: there is no other broker that a listener could be for; leave "
        "it out"
    ]
    file = read(tmp_path, KAFKAS_OWN)
    assert file.mistakes == ()
    assert file.not_kept == ()
    assert file.endpoints == {"listen": Endpoint("", 9092), "advertise": Endpoint("localhost", 9092)}
    assert file.data == Path("/tmp/kraft-combined-logs")
    assert file.options == {
        "node.id": 1,
        "socket.request.max.bytes": 104_857_600,
        "num.partitions": 1,
        "log.retention.ms": 604_800_000,
        "log.segment.bytes": 1 << 30,
        "log.retention.check.interval.ms": 300_000,
    }
    (note,) = file.notes()
    assert note.startswith(f"{file.path}: 9 keys are unknown here, and have no effect: process.roles, ")


def test_the_files_on_the_page_of_tls_have_no_mistakes(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/tls.md").read_text()
    blocks = [each.partition("```")[0] for each in page.split("```properties\n")[1:]]
    assert [mistakes(tmp_path, each) for each in blocks] == [[], []]
    assert [door.security for each in blocks for door in read(tmp_path, each).kafka_doors] == [
        TransportSecurity.TLS,
        TransportSecurity.TLS,
        TransportSecurity.PLAINTEXT,
    ]


def test_tls_that_cannot_be_is_a_mistake_of_the_file(tmp_path: Path) -> None:
    listener = "listeners=SSL://:1\n"
    assert mistakes(tmp_path, listener) == [
        "server.properties: TLS needs a private key and its certificate: set ssl.keystore.location to a file with both"
    ]
    keystore = "listener.name.ssl.ssl.keystore.location=/k.pem\n"
    assert mistakes(tmp_path, listener + keystore + "ssl.principal.mapping.rules=RULE:a\n") == [
        "server.properties: ssl.principal.mapping.rules: a rule is RULE:pattern/replacement/, maybe with L or U behind "
        "it, not 'RULE:a'"
    ]
    assert mistakes(tmp_path, "listeners=PLAINTEXT://:1\n" + keystore) == [
        "server.properties: listener.name.ssl: there is no listener SSL in listeners"
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("authorizer.class=x", "unknown option authorizer.class; did you mean authorizer.class.name?"),
        ("Authorizer.Class.Name=x", "unknown option Authorizer.Class.Name; did you mean authorizer.class.name?"),
        ("super.principals=User:a", "unknown option super.principals"),
        ("allow.everybody=true", "unknown option allow.everybody"),
        (
            "listener.name.a.ssl.client.aut=required",
            "unknown option listener.name.a.ssl.client.aut; did you mean ssl.client.auth?",
        ),
        (
            "listener.name.a.connections.max.reauth.ms=1000",
            "listener.name.a.connections.max.reauth.ms: connections.max.reauth.ms is set for all listeners, and never "
            "for one alone",
        ),
        (
            "listener.name.a.sasl.enabled.mechanism=PLAIN",
            "unknown option listener.name.a.sasl.enabled.mechanism; did you mean sasl.enabled.mechanisms?",
        ),
    ],
)
def test_a_security_option_that_has_no_effect_is_a_mistake(tmp_path: Path, line: str, message: str) -> None:
    [mistake] = mistakes(tmp_path, f"{line}\n")
    assert mistake.startswith(f"server.properties:1: {message}")


def test_a_listener_has_mechanisms_of_its_own_where_clients_log_in_by_it(tmp_path: Path) -> None:
    listeners = (
        "listeners=IN://127.0.0.1:1,OUT://127.0.0.1:2\nlistener.security.protocol.map=IN:PLAINTEXT,OUT:SASL_PLAINTEXT\n"
    )
    [one, two] = read(tmp_path, f"{listeners}listener.name.out.sasl.enabled.mechanisms=PLAIN\n").kafka_doors
    assert (one.options, two.options) == ({}, {"sasl_enabled_mechanisms": "PLAIN"})
    [mistake] = mistakes(tmp_path, f"{listeners}listener.name.in.sasl.enabled.mechanisms=PLAIN\n")
    assert "listener.name.in.sasl.enabled.mechanisms: nobody logs in by IN" in mistake


def test_a_key_of_one_listener_that_is_not_kept_is_told_without_its_value(tmp_path: Path) -> None:
    key = "listener.name.a.plain.sasl.jaas.config"
    [note] = read(tmp_path, f'{key}=PlainLoginModule required user_admin="geheim";\n').notes()
    assert key in note
    assert "geheim" not in note


TOML = """\
data = "/var/lib/exacta"
listen = "127.0.0.1:9092"
log_format = "json"
pulsar_listen = "127.0.0.1:6650"
num_partitions = 3
auto_create_topics_enable = false
max_connections = 100
max_connections_per_ip = 10
group_consumer_assignors = ["range", "uniform"]
"log.retention.hours" = 1

[transaction]
two_phase_commit_enable = true
max.timeout.ms = 60_000
"""


def test_a_toml_file(tmp_path: Path) -> None:
    file = read(tmp_path, TOML, "exacta.toml")
    assert file.mistakes == ()
    assert file.notes() == []
    assert file.data == Path("/var/lib/exacta")
    assert file.log == {"log.format": "json"}
    assert file.endpoints == {"listen": Endpoint("127.0.0.1", 9092), "pulsar_listen": Endpoint("127.0.0.1", 6650)}
    assert file.options == {
        "num.partitions": 3,
        "auto.create.topics.enable": False,
        "max.connections": 100,
        "max.connections.per.ip": 10,
        "group.consumer.assignors": "range,uniform",
        "log.retention.ms": 3_600_000,
        "transaction.two.phase.commit.enable": True,
        "transaction.max.timeout.ms": 60_000,
    }


def test_a_promise_that_is_not_kept_is_told_by_name_and_a_kept_one_is_not(tmp_path: Path) -> None:
    text = "min.insync.replicas=2\ndefault.replication.factor=3\ncompression.type=producer\nlog.cleaner.enable=TRUE\n"
    file = read(tmp_path, text)
    assert file.not_kept == (
        "min.insync.replicas=2 is not kept: there is one replica",
        "default.replication.factor=3 is not kept: there is one replica",
    )
    assert file.mistakes == ()
    assert read(tmp_path, "min.insync.replicas=2\nmin.insync.replicas=1\n").notes() == []


def test_a_value_of_kafkas_that_an_option_cannot_have_is_no_mistake(tmp_path: Path) -> None:
    file = read(tmp_path, "queued.max.request.bytes=-1\nlog.flush.interval.ms=9223372036854775807\n")
    assert (file.mistakes, file.options) == ((), {})
    assert file.not_kept == (
        "queued.max.request.bytes=-1 is not kept: the memory for requests is always bounded, by the option's default",
        "log.flush.interval.ms=9223372036854775807 is not kept: what needs no sync of its own is synced by the "
        "option's default",
    )
    later = read(tmp_path, "queued.max.request.bytes=-1\nqueued.max.request.bytes=5\n")
    assert (later.not_kept, later.options) == ((), {"queued.max.request.bytes": 5})


def test_no_key_of_kafka_is_a_mistake_by_its_name(tmp_path: Path) -> None:
    names = (Path(__file__).parents[1] / "config/kafka-4.4-broker-keys.txt").read_text().split()
    assert len(names) > 350
    file = read(tmp_path, "".join(f"{name}=\n" for name in names))
    assert [each for each in file.mistakes if "unknown" in each] == []
    assert len(file.passed_over) > 250


def test_one_key_that_changes_nothing_is_told_in_a_line_of_its_own(tmp_path: Path) -> None:
    file = read(tmp_path, "num.io.threads=8\nnum.io.threads=9\n")
    assert file.notes() == [f"{file.path}: a key is unknown here, and has no effect: num.io.threads"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("log.retention.hours=2", 7_200_000),
        ("log.retention.hours=2\nlog.retention.minutes=3", 180_000),
        ("log.retention.ms=5\nlog.retention.hours=2\nlog.retention.minutes=3", 5),
        ("log.retention.minutes=-1", -1),
    ],
)
def test_the_finer_unit_of_retention_wins(tmp_path: Path, text: str, value: int) -> None:
    assert read(tmp_path, text).options == {"log.retention.ms": value}


def test_hours_of_a_roll_are_its_milliseconds_unless_these_are_given(tmp_path: Path) -> None:
    assert read(tmp_path, "log.roll.hours=2").options == {"log.roll.ms": 7_200_000}
    assert read(tmp_path, "log.roll.hours=2\nlog.roll.ms=5").options == {"log.roll.ms": 5}


def test_a_broker_id_is_a_node_id(tmp_path: Path) -> None:
    assert read(tmp_path, "broker.id=7").options == {"node.id": 7}
    assert read(tmp_path, "broker.id=7\nnode.id=8").options == {"node.id": 8}
    assert read(tmp_path, "broker.id=-1").options == {}


def test_the_directory_is_that_of_log_dirs_before_log_dir(tmp_path: Path) -> None:
    assert read(tmp_path, "log.dir=/a").data == Path("/a")
    assert read(tmp_path, "log.dir=/a\nlog.dirs=/b").data == Path("/b")


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("\nnum.partitions", ":2: expected key=value, not 'num.partitions'"),
        ("\n\nnum.partitions=10001", ":3: num.partitions must be between 1 and 10000, not 10001"),
        ("num.partition=1", ":1: unknown option num.partition; did you mean num.partitions?"),
        ("min.insync.replica=1", ":1: unknown option min.insync.replica; did you mean min.insync.replicas?"),
        ("pulsar.lisen=:1", ":1: unknown option pulsar.lisen; did you mean pulsar.listen?"),
        ("web.qq=1", ":1: unknown option web.qq"),
        ("log.retention.sm=1", ":1: unknown option log.retention.sm; did you mean log.retention.ms?"),
        ("listen=nonsense", ":1: listen: expected HOST:PORT, not 'nonsense'"),
        ("log.level=loud", ":1: log.level must be debug or info or warning or error, not 'loud'"),
        ("data=", ":1: data must be a directory, not an empty name"),
        ("log.dirs=/a,/b", ": log.dirs must be one directory, not /a,/b"),
        ("log.dirs=/a\ndata=/b", ": data and Kafka's log.dirs say the same: give one of them"),
        ("log.retention.hours=0", ": log.retention.hours must be at least 1, or -1 for ever"),
        ("log.retention.hours=x", ": log.retention.hours must be a whole number, not 'x'"),
        ("log.roll.hours=0", ": log.roll.hours must be at least 1"),
        ("broker.id=x", ": broker.id must be a whole number, not 'x'"),
        ("listen=:1\nlisteners=PLAINTEXT://:2", ": listen and Kafka's listeners say the same: give one of them"),
        (
            "group.min.session.timeout.ms=9\ngroup.max.session.timeout.ms=8",
            ": group.min.session.timeout.ms (9) must not be above group.max.session.timeout.ms (8)",
        ),
    ],
)
def test_mistakes_are_told_with_their_place(tmp_path: Path, text: str, mistake: str) -> None:
    assert mistakes(tmp_path, text) == [f"server.properties{mistake}"]


def test_mistakes_of_toml_are_told_by_their_key(tmp_path: Path) -> None:
    assert mistakes(tmp_path, "num_partitions = 1.5\nlisten = 9092\n[a.b]\nc = 1\n", "exacta.toml") == [
        "exacta.toml: num.partitions must be a whole number, not 1.5",
        "exacta.toml: listen: expected HOST:PORT, not '9092'",
        "exacta.toml: unknown option a.b.c",
    ]


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^cannot read .*nowhere: No such file or directory$"):
        read_configuration_file(tmp_path / "nowhere")
    file = tmp_path / "server.properties"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"^cannot read .*server\.properties: it is not UTF-8$"):
        read_configuration_file(file)
    with pytest.raises(ConfigurationError, match=r"^.*exacta\.toml is no TOML: .*line 1"):
        read(tmp_path, "a = = 1", "exacta.toml")


@pytest.mark.parametrize(
    ("key", "kafkas"), [("listen=:1", "listeners"), ("advertise=b:1", "advertised.listeners")], ids=["listen", "told"]
)
def test_a_door_is_named_once(tmp_path: Path, key: str, kafkas: str) -> None:
    listeners = "listeners=IN://:1,OUT://:2\nadvertised.listeners=IN://a:1,OUT://a:2\n"
    file = read(tmp_path, listeners + "listener.security.protocol.map=IN:PLAINTEXT,OUT:PLAINTEXT\n" + key)
    name = key.partition("=")[0]
    assert file.mistakes == (f"{file.path}: {name} and Kafka's {kafkas} say the same: give one of them",)
