"""Commands name a cluster by option, file of properties, environment, or the default address."""

import pytest
import typer
from typer.testing import CliRunner

from exacta.cli import cluster
from exacta.cli.app import app
from exacta.cli.client_properties import UnreadableFile, in_javas_words
from exacta.client.security import KeyStore, Sasl, Security, Tls, TrustStore
from exacta.key_stores import PEM


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv(cluster.SERVERS_VARIABLE, raising=False)


def servers(given, file, monkeypatch, in_environment=None):
    if in_environment:
        monkeypatch.setenv(cluster.SERVERS_VARIABLE, in_environment)
    return cluster.cluster_of(given, file, "me").bootstrap


def test_the_nearest_to_the_call_names_the_cluster(tmp_path, monkeypatch):
    profile, without = tmp_path / "profile", tmp_path / "without"
    profile.write_text("bootstrap.servers=file:2\n")
    without.write_text("client.id=x\n")
    assert servers(None, None, monkeypatch) == "127.0.0.1:9092"
    assert servers(None, None, monkeypatch, "environment:3") == "environment:3"
    assert servers(None, without, monkeypatch, "environment:3") == "environment:3"
    assert servers(None, profile, monkeypatch, "environment:3") == "file:2"
    assert servers("option:1", profile, monkeypatch, "environment:3") == "option:1"


@pytest.mark.parametrize(
    ("option", "in_file", "in_environment", "named"),
    [
        ("nowhere", "b:1", "b:1", "--bootstrap-server"),
        (None, "nowhere", "b:1", "bootstrap.servers of --config"),
        (None, None, "nowhere", "EXACTA_BOOTSTRAP_SERVERS"),
    ],
)
def test_a_wrong_address_is_told_with_whoever_named_it(tmp_path, option, in_file, in_environment, named):
    arguments = ["topics", "list"] + ([] if option is None else ["-b", option])
    if in_file:
        (tmp_path / "profile").write_text(f"bootstrap.servers={in_file}\n")
        arguments += ["--config", str(tmp_path / "profile")]
    refused = CliRunner().invoke(app, arguments, env={cluster.SERVERS_VARIABLE: in_environment})
    assert (refused.exit_code, refused.stderr) == (2, f"exacta: {named}: 'nowhere' is not host:port\n")


def test_a_file_of_librdkafkas_says_the_same_as_one_of_the_java_client(tmp_path):
    for name in ("ca", "certificate", "key"):
        (tmp_path / name).write_text(f"-----BEGIN {name}-----")
    file = tmp_path / "kcat.conf"
    file.write_text(
        "metadata.broker.list=b:1\nsecurity.protocol=sasl_ssl\nsasl.mechanisms=SCRAM-SHA-512\nsasl.username=alice\n"
        f'sasl.password=s3"cr;et\nssl.ca.location={tmp_path}/ca\nssl.certificate.location={tmp_path}/certificate\n'
        f"ssl.key.location={tmp_path}/key\nssl.key.password=k\nssl.endpoint.identification.algorithm=none\n"
        "queue.buffering.max.ms=5\n"
    )
    found = cluster.cluster_of(None, file, "me")
    assert found.bootstrap == "b:1"
    assert found.security == Security(
        tls=Tls(
            truststore=TrustStore(location=f"{tmp_path}/ca", kind=PEM),
            keystore=KeyStore(
                key="-----BEGIN key-----",
                certificate_chain="-----BEGIN certificate-----",
                kind=PEM,
                key_password="k",
            ),
            verify_host_name=False,
        ),
        sasl=Sasl(mechanism="SCRAM-SHA-512", username="alice", password='s3"cr;et'),
    )


def test_what_the_java_client_says_stays(tmp_path):
    java = {"bootstrap.servers": "b:1", "sasl.mechanism": "PLAIN", "ssl.truststore.location": "there", "acks": "all"}
    assert in_javas_words(java) == java
    with pytest.raises(UnreadableFile, match=r"^ssl\.key\.location: '.*no-key' cannot be read: No such file"):
        in_javas_words({"ssl.key.location": str(tmp_path / "no-key")})


def test_a_key_that_is_misspelt_is_told_and_others_are_passed_over(tmp_path, capsys):
    file = tmp_path / "profile"
    file.write_text("acks=all\nsecurity.protocl=SSL\nkey.serializer=x\ngroup.id=g\nenable.idempotence=true\n")
    cluster.cluster_of(None, file, "me")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        "'security.protocl' does not say how to connect, and is passed over; did you mean security.protocol?"
    )


def test_several_problems_are_told_in_one_line(tmp_path, capsys):
    file = tmp_path / "profile"
    file.write_text("security.protocol=SASL_SSL\n")
    with pytest.raises(typer.Exit):
        cluster.cluster_of(None, file, "me")
    told = capsys.readouterr().err
    assert told.startswith("exacta: there are 2 problems: 'security.protocol' of --config SASL_SSL needs ")
    assert (told.count("; "), told.count("\n")) == (1, 1)


def test_a_file_that_cannot_be_read_is_a_wrong_call(tmp_path, capsys):
    with pytest.raises(typer.Exit) as ended:
        cluster.cluster_of(None, tmp_path / "missing", "me")
    assert ended.value.exit_code == 2
    assert "cannot be read: No such file" in capsys.readouterr().err


def every_command(command, path=()):
    below = getattr(command, "commands", None)
    if below is None:
        yield path, command
    for name, each in (below or {}).items():
        yield from every_command(each, (*path, name))


WITHOUT_CLUSTER = {
    ("serve",),
    ("demo",),
    *(("config", each) for each in ("check", "show", "reference")),
    *(("config", each) for each in ("unit", "sysusers", "example", "alerts", "dashboard")),
    *(("log", each) for each in ("copy", "dump", "verify", "repair")),
    ("cluster", "accept-loss"),
}


@pytest.mark.parametrize(
    ("path", "command"),
    [pytest.param(*each, id=" ".join(each[0])) for each in every_command(typer.main.get_command(app))],
)
def test_all_commands_have_one_style(path, command):
    """Each says in one sentence what it does, and names its cluster by the same options as all others."""
    first = command.help.splitlines()[0]
    assert first[0].isupper()
    assert first[-1] == "."
    options = {option for parameter in command.params for option in parameter.opts}
    if path not in WITHOUT_CLUSTER:
        assert {"--bootstrap-server", "-b", "--config", "--command-config", "-F"} <= options
        if path != ("verify",):  # which must be told a cluster, since it writes into it
            assert [parameter.opts[0] for parameter in command.params][-2:] == ["--bootstrap-server", "--config"]
    for parameter in command.params:
        if path != ("serve",):
            assert getattr(parameter, "help", None), parameter.name
            assert parameter.help.rstrip(")")[-1] in ".?", (parameter.name, parameter.help)
            is_option = (
                parameter.param_type_name == "option" and parameter.name != "offsets"
            )  # which says what twice is
            if is_option and parameter.multiple:
                assert "may be repeated" in parameter.help.lower(), (parameter.name, parameter.help)


SHOWING = {"list", "describe", "lag", "explain", "reset"}


def test_commands_that_show_something_do_so_for_programs_too():
    without = {
        path
        for path, command in every_command(typer.main.get_command(app))
        if path[-1] in SHOWING and "--output" not in {each for param in command.params for each in param.opts}
    }
    assert without == {("subscriptions", "reset")}


def test_the_shell_completes_commands():
    asked = CliRunner().invoke(
        app,
        [],
        prog_name="exacta",
        env={"_EXACTA_COMPLETE": "complete_bash", "COMP_WORDS": "exacta topi", "COMP_CWORD": "1"},
    )
    assert asked.stdout.split() == ["topics"]
