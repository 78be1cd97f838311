"""The table of security options: each one is left out in turn, and whoever has no rights gets no further by that.

`CLOSED` holds what an operator may have set, in several ways. A start without one of the options is refused, or nobody
who has no rights sees or changes anything. An option that is new stands in none of them, and the first test says so.
"""

import asyncio
import re
import ssl
import struct
from pathlib import Path
from typing import Any

import pytest

from exacta.config.errors import ConfigurationError
from exacta.config.options import DYNAMIC, SECURITY, configure, options
from exacta.core.commands import CreateTopic
from exacta.core.queries.topic_lists import topic_names
from exacta.front.doors import Door, TransportSecurity
from exacta.protocol.kafka.codec import encode_request
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest
from exacta.protocol.kafka.messages.k17_sasl_handshake import SaslHandshakeRequest
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from exacta.protocol.kafka.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.frames import build_frame
from exacta.server.configuration_file import read_configuration_file
from exacta.server.errors import ServerError
from exacta.server.event_loop import new_event_loop
from exacta.server.server import Server
from tests.server.closed_ways import Made

pytestmark = pytest.mark.usefixtures("unpaced_logins")

ROOT = Path(__file__).parents[2]
HIDDEN = "hid7e3a"
ANSWER_SECONDS = 10
WAYS = (
    *("certificates", "certificates in PKCS #12", "certificates as text", "passwords", "passwords without rules"),
    *("tokens", "doors that are named", "Pulsar's certificates", "Pulsar's tokens by a secret"),
    *("Pulsar's tokens by a key", "Pulsar's tokens without rules"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("closed"))


# --- the table --------------------------------------------------------------------------------------------------------

SECURITY_WORDS = {
    *("acl", "allow", "anonymous", "auth", "authentication", "authorizer", "password", "reauth", "sasl", "secret"),
    *("ssl", "super", "token", "users"),
}
NO_SECURITY = {"web.allowed.hosts": "it is about browsers (DNS rebinding), and left out it is at its narrowest"}
"""Options whose names sound like security, and why nobody gets further by them."""


def test_every_security_option_is_left_out_somewhere(made: Made) -> None:
    assert {name for each in made.closed.values() for name in each.settings} == SECURITY


def test_an_option_that_sounds_like_security_is_in_the_table() -> None:
    sounds = {name for name in options() if SECURITY_WORDS & set(name.split(".")) or name.startswith(("token", "tls"))}
    assert sounds - SECURITY == set()
    assert not set(NO_SECURITY) & SECURITY
    assert {name for name, option in options().items() if option.is_secret} <= SECURITY


def test_the_page_lists_the_table() -> None:
    page = (ROOT / "docs/explanation/security.md").read_text().partition("## Options of security")[2]
    rows = [line for line in page.splitlines() if line.startswith("| ") and "`" in line]
    assert set(re.findall(r"`([^`]+)`", "".join(rows))) == SECURITY


def test_no_security_option_can_be_set_at_run_time() -> None:
    """`tests/kafka/test_broker_configs.py` asks a broker, which says INVALID_CONFIG."""
    assert not SECURITY & DYNAMIC
    assert not any(options()[name].dynamic for name in SECURITY)


@pytest.mark.parametrize("name", sorted(SECURITY))
@pytest.mark.parametrize("empty", ["", " ", "\t"])
def test_an_option_that_is_empty_is_an_error(name: str, empty: str) -> None:
    with pytest.raises(ConfigurationError, match="is empty") as error:
        configure({name: empty})
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("name", sorted(SECURITY))
def test_an_option_that_is_misspelt_is_an_error(name: str) -> None:
    for misspelt in (name + "s", name[:-1], name.replace(".", "-", 1) if "." in name else name.lower(), f"x.{name}"):
        if misspelt not in options():
            with pytest.raises(ConfigurationError, match=misspelt):
                configure({misspelt: "x"})


@pytest.mark.parametrize("name", sorted(SECURITY))
@pytest.mark.parametrize("suffix", ["toml", "properties"])
def test_an_option_that_is_misspelt_in_a_file_is_an_error(tmp_path: Path, name: str, suffix: str) -> None:
    for misspelt in (name + "s", name[:-1], name[:3] + name[4:], name.replace(".", "", 1)):
        if misspelt not in options():
            file = tmp_path / f"server.{suffix}"
            file.write_text(f'"{misspelt}" = "x"\n' if suffix == "toml" else f"{misspelt}=x\n")
            assert read_configuration_file(file).mistakes, misspelt


# --- what points to nothing -------------------------------------------------------------------------------------------

_STORES = ("ssl.keystore.location", "ssl.truststore.location")
_TEXTS = ("ssl.keystore.key", "ssl.key.password", "ssl.keystore.certificate.chain", "ssl.truststore.certificates")
POINTING = {
    "certificates": _STORES,
    "certificates in PKCS #12": (*_STORES, "ssl.keystore.password", "ssl.truststore.password"),
    "certificates as text": _TEXTS,
    "passwords": ("sasl.enabled.mechanisms", "authorizer.class.name"),
    "tokens": ("sasl.oauthbearer.jwks.endpoint.url",),
    "doors that are named": ("allow.anonymous",),
    "Pulsar's certificates": ("tlsCertificateFilePath", "tlsKeyFilePath", "tlsTrustCertsFilePath"),
    "Pulsar's tokens by a secret": ("tokenSecretKey", "authenticationProviders"),
    "Pulsar's tokens by a key": ("tokenPublicKey", "tokenPublicAlg"),
}


@pytest.mark.parametrize(("way", "name"), [(way, name) for way, names in POINTING.items() for name in names])
@pytest.mark.parametrize("nothing", ["/no/such/thing", "file:///no/such/thing"])
def test_an_option_that_points_to_nothing_is_an_error_at_the_start(
    made: Made, tmp_path: Path, way: str, name: str, nothing: str
) -> None:
    error = outcome(made, tmp_path, way, {**made.closed[way].settings, name: nothing})
    assert error is not None
    assert len(error.splitlines()) == 1


# --- left out in turn -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_without_any_one_of_them_nobody_without_rights_gets_further(made: Made, tmp_path: Path, way: str) -> None:
    settings = made.closed[way].settings
    assert outcome(made, tmp_path / "all", way, settings) is None
    for number, left_out in enumerate(settings):
        error = outcome(made, tmp_path / str(number), way, {k: v for k, v in settings.items() if k != left_out})
        assert error is None or len(error.splitlines()) == 1


def test_the_ways_are_those_that_are_made(made: Made) -> None:
    assert set(WAYS) == set(made.closed)


def outcome(made: Made, data: Path, way: str, settings: dict[str, str]) -> str | None:
    """Start a server, and attack it; return why it does not start, or None."""
    try:
        configuration = configure(settings)
    except ConfigurationError as error:
        return str(error)
    doors = made.closed[way].doors

    async def run() -> None:
        server = Server(asyncio.get_running_loop(), configuration, data, doors)
        try:
            server.open()
            await server.start()
            command = CreateTopic(topic=HIDDEN, topic_id=bytes(range(16)), partition_count=1, configs={})
            done = asyncio.get_running_loop().create_future()
            server.engine.submit((command,), done.set_result)
            await done
            for each in server.reception.doors:
                for certificate in made.certificates:
                    await asyncio.wait_for(attack(made, each, certificate), ANSWER_SECONDS)
            assert list(server.engine.advice.look(topic_names)) == [HIDDEN]
            await server.stop()
        finally:
            server.abandon()

    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(run())
    except ServerError as error:
        return str(error)
    return None


async def attack(made: Made, door: Door, certificate: str) -> None:
    """Try to see the hidden topic and to make another one, with somebody's certificate."""
    context = None
    if door.security is TransportSecurity.TLS:
        context = ssl.create_default_context(cadata=made.authority.cert_pem.bytes().decode())
        if (issued := made.certificates[certificate]) is not None:
            issued.configure_cert(context)
    tried = attempts(door)
    for sent, ends in tried if certificate == "mallory's" else tried[:1]:
        try:
            name = None if context is None else "localhost"
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", door.endpoint.port, ssl=context, server_hostname=name
            )
        except OSError:
            continue  # there is no connection without another certificate
        found = bytearray()
        try:
            writer.write(sent)
            while ends not in found and (came := await reader.read(1 << 16)):
                found += came
        except OSError:
            pass
        finally:
            writer.transport.abort()
        assert HIDDEN.encode() not in found, (door.name, certificate)


PONG = build_frame(pb.CommandPong())
NO_SUCH_API = struct.pack(">ihhih", 10, 999, 0, 1, -1)
"""A request that ends a connection: it is sent last, so that the end says that all is answered."""


def attempts(door: Door) -> list[tuple[bytes, bytes]]:
    """Return what is sent by each attempt, and how its last answer ends where the connection does not."""
    if door.front == "kafka":
        return [(_kafka(*logging_in), b"nothing") for logging_in in ((), *_LOGINS)]
    if door.front == "pulsar":
        return [(_pulsar(method), PONG) for method in ("", "token", "basic", "tls")]
    methods = ("", "Authorization: Bearer a.b.c\r\n", "Authorization: Basic cm9vdDpyb290\r\n")
    path = b"/admin/v2/persistent/public/default"
    return [
        (
            b"%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n" % (verb, path + rest, each.encode()),
            b"nothing",
        )
        for each in methods
        for verb, rest in ((b"GET", b""), (b"PUT", b"/made"))
    ]


_LOGINS: list[tuple[Any, ...]] = [
    (SaslHandshakeRequest(mechanism=mechanism), SaslAuthenticateRequest(auth_bytes=token))
    for mechanism, token in (
        ("PLAIN", b"\0root\0root"),
        ("SCRAM-SHA-256", b"n,,n=root,r=x"),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer a.b.c\x01\x01"),
    )
]


def _kafka(*logging_in: Any) -> bytes:
    made = CreateTopicsRequest(topics=[CreatableTopic(name="made", num_partitions=1, replication_factor=1)])
    requests = [*((each, 1) for each in logging_in), (made, 7), (MetadataRequest(topics=None), 12)]
    return b"".join(b"".join(encode_request(each, version, 1, "c")) for each, version in requests) + NO_SUCH_API


def _pulsar(method: str) -> bytes:
    connect = pb.CommandConnect(client_version="c", protocol_version=20)
    if method:
        connect.auth_method_name, connect.auth_data = method, b"root:root"
    commands = (
        connect,
        pb.CommandProducer(topic="made", producer_id=1, request_id=1),
        pb.CommandGetTopicsOfNamespace(request_id=2, namespace="public/default"),
        pb.CommandPing(),
    )
    return b"".join(map(build_frame, commands))
