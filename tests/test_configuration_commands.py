"""`exacta config …`, and the page of the configuration, which is made from code."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from exacta.cli.app import app
from exacta.cli.configuration_reference import reference
from exacta.config.kafka_keys import KAFKA_KEYS
from exacta.config.options import SECURITY, options
from exacta.config.topic import TOPIC_CONFIGS
from exacta.server.configuration_file import read_configuration_file

ROOT = Path(__file__).parents[1]

BY_TOKEN = (
    "sasl.enabled.mechanisms=OAUTHBEARER\nsasl.oauthbearer.expected.issuer=i\nsasl.oauthbearer.expected.audience=a\n"
    "sasl.oauthbearer.jwks.endpoint.url="
)
PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
BY_PULSAR_TOKEN = f"authenticationEnabled=true\nauthenticationProviders={PROVIDER}\ntokenSecretKey=file:///nowhere.key"


def call(*arguments: object) -> tuple[int, str, str]:
    called = CliRunner().invoke(app, ["config", *map(str, arguments)])
    return called.exit_code, called.stdout, called.stderr


# --- check ---


def test_a_file_that_can_be_served(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nnum.io.threads=8\nmin.insync.replicas=2\n")
    code, out, err = call("check", file)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "warning: min.insync.replicas=2 is not kept: there is one replica",
        "no effect: num.io.threads: unknown here",
        f"{file} can be served",
    ]


def test_all_mistakes_of_a_file_are_told(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=0\nweb.qq=1\n")
    code, out, err = call("check", file)
    assert (code, err) == (1, f"exacta: {file} has 2 mistakes\n")
    assert out.splitlines() == [
        f"mistake: {file}:1: num.partitions must be between 1 and 10000, not 0",
        f"mistake: {file}:2: unknown option web.qq",
    ]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("listeners=PLAINTEXT://0.0.0.0:9092", "other machines reach PLAINTEXT on 0.0.0.0:9092"),
        ("listeners=SSL://:9093\nssl.keystore.location=/nowhere.pem", "/nowhere.pem"),
        ("listeners=SASL_PLAINTEXT://0.0.0.0:9092\nsasl.enabled.mechanisms=PLAIN", "unencrypted"),
        (f"listeners=SASL_PLAINTEXT://127.0.0.1:9092\n{BY_TOKEN}file:///nowhere.json", "/nowhere.json"),
        (f"pulsar.listen=127.0.0.1:6650\n{BY_PULSAR_TOKEN}", "tokenSecretKey: cannot read /nowhere.key"),
    ],
)
def test_what_a_start_would_refuse_is_told(tmp_path: Path, lines: str, reason: str) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"{lines}\n")
    code, _, err = call("check", file)
    assert code == 1
    assert err.startswith(f"exacta: {file}: ")
    assert err.count("\n") == 1
    assert reason in err


@pytest.mark.parametrize("command", ["check", "show"])
def test_a_file_that_cannot_be_read_is_a_wrong_call(tmp_path: Path, command: str) -> None:
    code, out, err = call(command, tmp_path / "nowhere")
    assert (code, out, err) == (2, "", f"exacta: cannot read {tmp_path / 'nowhere'}: No such file or directory\n")


# --- show ---


@pytest.mark.parametrize("name", ["\U0001f5c4", 'a"b\\c', "a\nb\x7f\u2028c", "é"])
def test_a_name_of_any_characters_is_shown_as_toml(tmp_path: Path, name: str) -> None:
    file, shown = tmp_path / "server.properties", tmp_path / "exacta.toml"
    escaped = name.replace("\\", r"\\").replace("\n", r"\n")
    file.write_text(f"data={escaped}\n", encoding="utf-8")
    code, out, _ = call("show", file, "--changed")
    assert code == 0
    shown.write_text(out, encoding="utf-8")
    assert read_configuration_file(shown).data == Path(name)


def test_what_is_shown_is_a_file_that_says_the_same(tmp_path: Path) -> None:
    file, shown = tmp_path / "server.properties", tmp_path / "exacta.toml"
    file.write_text(
        "listeners=PLAINTEXT://[::1]:1\ndata=/a \\\\ b\nweb.listen=127.0.0.1:2\nauto.create.topics.enable=false\n"
        "log.retention.hours=1\ntransaction.buffer=sidecar\n"
    )
    code, out, _ = call("show", file, "--changed")
    assert code == 0
    assert out.splitlines() == [
        r'data = "/a \\ b"  # default: "exacta-data"',
        'listen = "[::1]:1"  # default: "127.0.0.1:9092"',
        "auto_create_topics_enable = false  # default: true",
        "log_retention_ms = 3600000  # default: 604800000",
        'transaction_buffer = "sidecar"  # default: "marker"',
        'web_listen = "127.0.0.1:2"',
    ]
    shown.write_text(call("show", file)[1])
    first, second = read_configuration_file(file), read_configuration_file(shown)
    assert second.mistakes == ()
    assert (second.endpoints, second.data) == (first.endpoints, first.data)
    unset = {name for name in SECURITY if options()[name].default == ""}
    shown_options = {name: option.default for name, option in options().items() if name not in unset}
    assert second.options == shown_options | first.options


def test_no_secret_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    secrets = "ssl.key.password=p-1\nlistener.name.ssl.ssl.keystore.password=p-2\nssl.keystore.type=PEM\n"
    file.write_text(f"listeners=SSL://:1\nssl.keystore.location=k\n{secrets}")
    code, out, err = call("show", file)
    assert (code, err) == (0, "")
    assert "p-1" not in out
    assert "p-2" not in out
    assert "# ssl_key_password is set, and a secret" in out.splitlines()
    assert "# listener_name_ssl_ssl_keystore_password is set, and a secret" in out.splitlines()
    found = read_configuration_file(file)
    assert "p-1" not in repr(found)
    assert "p-2" not in repr(found)


def test_several_listeners_are_shown_as_kafkas_keys_and_read_again(tmp_path: Path) -> None:
    file, shown = tmp_path / "server.properties", tmp_path / "exacta.toml"
    file.write_text(
        "listeners=IN://:1,OUT://[::1]:2\nadvertised.listeners=OUT://o:3,IN://i:4\n"
        "listener.security.protocol.map=IN:PLAINTEXT,OUT:PLAINTEXT\n"
    )
    assert call("show", file, "--changed")[1].splitlines() == [
        'listeners = "IN://:1,OUT://[::1]:2"',
        'advertised_listeners = "IN://i:4,OUT://o:3"',
        'listener_security_protocol_map = "IN:PLAINTEXT,OUT:PLAINTEXT"',
    ]
    shown.write_text(call("show", file)[1])
    first, second = read_configuration_file(file), read_configuration_file(shown)
    assert second.mistakes == ()
    assert second.kafka_doors == first.kafka_doors


def test_without_a_file_nothing_differs_from_the_defaults() -> None:
    assert call("show", "--changed") == (0, "", "")
    assert "num_partitions = 1\n" in call("show")[1]


def test_a_file_with_a_mistake_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "exacta.toml"
    file.write_text("num_partitions = 0\n")
    code, out, err = call("show", file)
    assert (code, out, err) == (1, "", f"exacta: {file}: num.partitions must be between 1 and 10000, not 0\n")


# --- the page ---


def test_the_page_is_what_the_code_makes() -> None:
    page = (ROOT / "docs/reference/configuration.md").read_text()
    assert page == reference(), "run make docs"
    assert call("reference") == (0, page, "")


def test_the_page_has_every_option_and_every_key() -> None:
    cells = {cell.strip() for line in reference().splitlines() if line.startswith("|") for cell in line.split("|")}
    single = {name for cell in cells for name in cell.split(", ")}
    named = {*options(), *TOPIC_CONFIGS, *(name for name in KAFKA_KEYS if name not in options())}
    assert {name for name in named if f"`{name}`" not in single} == set()


@pytest.mark.parametrize(
    ("option", "cells"),
    [
        (
            "log.retention.ms",
            "`604800000` | -1 to 2⁶³ − 1 ms; dynamic; topics: `retention.ms`; Kafka's; "
            "also `log.retention.hours`, `log.retention.minutes`",
        ),
        ("transaction.buffer", "`marker` | `marker`, `sidecar`; topics: `transaction.buffer`"),
        ("auto.create.topics.enable", "`true` | true or false; dynamic; Kafka's"),
        ("node.id", "`0` | 0 to 2³¹ − 1; Kafka's; also `broker.id`"),
    ],
)
def test_a_row_says_what_an_option_does_then_its_default_and_values(option: str, cells: str) -> None:
    assert f"| `{option}` | {options()[option].description} | {cells} |" in reference()
