"""Connections that are secured: one contract, on a scripted broker, on Exacta and, if there is one, on Apache Kafka."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import trustme
from benchmarks.kafka.security import REAUTHENTICATION_MS

from exacta.client import connection as connections
from exacta.client.deadline import Deadline
from exacta.client.errors import AuthenticationFailed, DeadlineExceeded, KafkaError, TlsFailed
from exacta.client.routing import TRANSACTION, Client, Coordinator, UnknownTopic
from exacta.client.security import Cluster, KeyStore, Sasl, Security, Tls, TrustStore
from exacta.client.transactions import init_producer_id
from tests.client.secured import MECHANISMS, REAL, Access, ScriptedBroker, scripted
from tests.client.secured_exacta import secured_exacta

AT_ONCE_S = 8.0
"""Much less than a client would try for."""


@pytest.fixture(scope="module")
def exacta(tmp_path_factory, certificates):
    with secured_exacta(tmp_path_factory.mktemp("exacta"), secrets=certificates.folder) as broker:
        yield broker


@pytest.fixture(params=["scripted", "exacta", "real"])
def access(request, certificates, script):
    if request.param == "exacta":
        yield request.getfixturevalue("exacta").access
    elif request.param == "real":
        if not REAL:
            pytest.skip("EXACTA_TEST_SECURE names no secured Apache Kafka")
        yield Access.of(Path(REAL))
    else:
        with scripted(certificates.folder, script) as connected:
            yield connected


@pytest.fixture
def is_scripted(request):
    return request.node.callspec.params["access"] == "scripted"


def client_of(access, protocol, security, *, host="127.0.0.1"):
    address = access.listeners[protocol].replace("127.0.0.1", host)
    return Client(Cluster(bootstrap=address, security=security))


def refusal(access, protocol, security, *, host="127.0.0.1"):
    """Return what the client says at once where a connection cannot be."""
    began_s = time.monotonic()
    with client_of(access, protocol, security, host=host) as client:
        with pytest.raises((TlsFailed, AuthenticationFailed)) as refused:
            client.nodes()
        assert time.monotonic() - began_s < AT_ONCE_S
    said = str(refused.value)
    assert not any(password in said for password in access.accounts.values())
    assert not said.startswith("gave up")
    return refused.value


# --- what works -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [
        ("PLAINTEXT", "PLAIN"),
        ("SSL", "PLAIN"),
        *((protocol, mechanism) for protocol in ("SASL_PLAINTEXT", "SASL_SSL") for mechanism in MECHANISMS),
    ],
)
def test_every_protocol_and_mechanism(access, protocol, mechanism):
    security = access.security(protocol, mechanism)
    assert security.protocol == protocol
    with client_of(access, protocol, security) as client:
        assert client.nodes() == [1]


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_requests_that_are_larger_than_a_tls_record(access, protocol):
    topics = [f"none-{index:05}-{'x' * 200}" for index in range(2_000)]
    with client_of(access, protocol, access.security(protocol)) as client:
        codes = client.refresh(topics, client.deadline())
        assert set(codes) == set(topics)
        with pytest.raises(UnknownTopic):
            client.partitions(topics[:1])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_login_that_is_about_to_end_is_renewed_on_the_same_connection(
    access, script, is_scripted, mechanism, monkeypatch
):
    """KIP-368: a broker hangs up on a client that goes on after that.

    With the scripted one, time is virtual: on a busy machine the client would come too late for the little that is left
    of a short session. With the real one a session is long enough.
    """
    if not is_scripted and mechanism != "SCRAM-SHA-512":
        pytest.skip("only there Apache Kafka ends a session")
    now_s, lifetime_s = 0.0, REAUTHENTICATION_MS / 1000
    script.session_lifetime_ms = REAUTHENTICATION_MS

    def clock():
        return now_s if is_scripted else time.monotonic()

    script.clock = clock
    monkeypatch.setattr(connections, "time", SimpleNamespace(monotonic=clock))
    with client_of(access, "SASL_PLAINTEXT", access.security("SASL_PLAINTEXT", mechanism)) as client:
        assert client.nodes() == [1]
        connection = client._connections._seed
        ends_s = clock() + 2.2 * lifetime_s
        while clock() < ends_s:
            client.refresh([], Deadline(5_000))
            assert client._connections._seed is connection
            now_s += lifetime_s / 32  # less than what is left of a session when it must be renewed
    assert not is_scripted or script.logins == 3


# --- what is refused, and how it is said ------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", ["exacta", "nobody"])
def test_a_wrong_login_is_said_at_once_and_not_repeated(access, script, mechanism, user):
    wrong = Security(sasl=Sasl(mechanism=mechanism, username=user, password="not-the-password"))
    said = str(refusal(access, "SASL_PLAINTEXT", wrong))
    assert said.startswith(f"{access.listeners['SASL_PLAINTEXT']} refused user '{user}' by {mechanism}: Authentication")
    assert "not-the-password" not in said
    assert script.connections in (0, 1)


def test_an_unknown_authority(access):
    security = Security(tls=Tls(keystore=KeyStore(location=access.client)))
    failed = refusal(access, "SSL", security)
    assert "is of an authority that is not trusted" in str(failed)
    assert "set option 'kafka.ssl.truststore.location'" in str(failed)


def test_another_host_name(access):
    security = access.security("SASL_SSL")
    failed = refusal(access, "SASL_SSL", security, host="localhost")
    assert "is for another host" in str(failed)
    unverified = Security(tls=access.tls(verify_host_name=False), sasl=security.sasl)
    with client_of(access, "SASL_SSL", unverified, host="localhost") as client:
        assert client.nodes() == [1]


def test_a_client_certificate_that_is_missing(access):
    assert "asks for a client certificate" in str(refusal(access, "SSL", Security(tls=access.tls())))


def test_a_client_certificate_that_nobody_knows(access, tmp_path):
    unknown = trustme.CA().issue_cert("client.invalid")
    unknown.private_key_and_cert_chain_pem.write_to_path(tmp_path / "unknown.pem")
    tls = Tls(truststore=TrustStore(location=access.ca), keystore=KeyStore(location=str(tmp_path / "unknown.pem")))
    assert "refused the certificate in 'kafka.ssl.keystore'" in str(refusal(access, "SSL", Security(tls=tls)))


@pytest.mark.parametrize(
    ("spoken", "port", "sentence"),
    [
        (
            "SSL",
            "PLAINTEXT",
            "does not speak TLS: option 'kafka.security.protocol' should be PLAINTEXT or SASL_PLAINTEXT",
        ),
        (
            "SASL_SSL",
            "SASL_PLAINTEXT",
            "does not speak TLS: option 'kafka.security.protocol' should be PLAINTEXT or SASL",
        ),
        ("PLAINTEXT", "SSL", "speaks TLS: option 'kafka.security.protocol' should be SSL or SASL_SSL, not PLAINTEXT"),
        (
            "SASL_PLAINTEXT",
            "SASL_SSL",
            "speaks TLS: option 'kafka.security.protocol' should be SSL or SASL_SSL, not SASL",
        ),
        ("PLAINTEXT", "SASL_PLAINTEXT", "'kafka.security.protocol' should be SASL_PLAINTEXT, not PLAINTEXT"),
        ("SSL", "SASL_SSL", "'kafka.security.protocol' should be SASL_SSL, not SSL"),
        ("SASL_PLAINTEXT", "PLAINTEXT", "wants no login at this port"),
    ],
)
def test_a_port_that_speaks_another_protocol(access, spoken, port, sentence):
    failed = refusal(access, port, access.security(spoken))
    assert sentence in str(failed)
    assert str(failed).startswith(access.listeners[port])


def test_a_permission_that_is_missing_is_named(access):
    with (
        client_of(access, "SASL_SSL", access.security("SASL_SSL", user="stranger")) as client,
        pytest.raises(KafkaError) as refused,
    ):
        init_producer_id(client, "mine", transaction_timeout_ms=1_000)
    assert str(refused.value) == (
        "looking up the coordinator of 'mine': TRANSACTIONAL_ID_AUTHORIZATION_FAILED "
        "(user 'stranger' needs the permission Describe on transactional id 'mine')"
    )


# --- what only a script does ------------------------------------------------------------------------------------------


def secured(broker, script, mechanism="SCRAM-SHA-256"):
    sasl = Sasl(mechanism=mechanism, username="exacta", password=script.accounts["exacta"])
    return Client(Cluster(bootstrap=broker.address, security=Security(sasl=sasl)), call_timeout_ms=5_000)


def test_a_broker_that_cannot_prove_that_it_knows_us_is_not_trusted(script):
    script.forged_signature = True
    with ScriptedBroker(script, login=True) as broker, secured(broker, script) as client:
        with pytest.raises(
            AuthenticationFailed, match=r"not trusted with the login of 'exacta': its signature is wrong"
        ):
            client.nodes()
        assert script.connections == 1


def test_a_broker_that_makes_guessing_easy_is_not_trusted(script):
    script.iterations = 4_095
    with (
        ScriptedBroker(script, login=True) as broker,
        secured(broker, script) as client,
        pytest.raises(AuthenticationFailed, match="it wants 4095 iterations: fewer than 4096 are not safe"),
    ):
        client.nodes()


def test_the_mechanisms_on_offer_are_named(script):
    script.mechanisms = ["GSSAPI", "PLAIN"]
    with (
        ScriptedBroker(script, login=True) as broker,
        secured(broker, script) as client,
        pytest.raises(AuthenticationFailed, match=r"does not offer .* SCRAM-SHA-256; it offers GSSAPI, PLAIN$"),
    ):
        client.nodes()


def test_a_broker_that_is_away_is_waited_for(script, certificates):
    with ScriptedBroker(script) as gone:
        address = gone.address
    tls = Security(tls=Tls(truststore=TrustStore(location=str(certificates.folder / "ca.pem"))))
    client = Client(Cluster(bootstrap=address, security=tls), call_timeout_ms=300)
    with pytest.raises(DeadlineExceeded, match=f"gave up after 0.3 s: cannot connect to {address}"):
        client.nodes()


def test_a_broker_that_hangs_up_once_is_asked_again_and_not_taken_for_one_that_wants_a_login(script):
    script.hang_ups = 1
    script.answers_handshakes_anywhere = True
    with ScriptedBroker(script) as broker, Client(broker.address, call_timeout_ms=5_000) as client:
        assert client.nodes() == [1]
        assert script.hang_ups == 0


def test_a_renewal_waits_until_nothing_is_in_flight(script):
    script.session_lifetime_ms = 60_000
    with ScriptedBroker(script, login=True) as broker, secured(broker, script) as client:
        client.nodes()
        connection, deadline = client._connections._seed, Deadline(5_000)
        request = client_request()
        connection.send(request, deadline)
        assert not connection.wants_rest
        connection._renewal_at_s = time.monotonic()
        assert connection.wants_rest
        connection.send(request, deadline)
        assert script.logins == 1
        connection.receive(deadline)
        connection.receive(deadline)
        assert not connection.wants_rest
        connection.call(request, deadline)
        assert script.logins == 2


def client_request():
    from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest

    return MetadataRequest(topics=[])


def test_a_password_that_was_changed_meanwhile_ends_the_session(script):
    script.session_lifetime_ms = 60_000
    with ScriptedBroker(script, login=True) as broker, secured(broker, script) as client:
        client.nodes()
        connection = client._connections._seed
        connection._renewal_at_s = time.monotonic()
        script.accounts["exacta"] = "another"
        with pytest.raises(AuthenticationFailed, match="refused user 'exacta' by SCRAM-SHA-256"):
            client.nodes()
        assert connection.closed


def test_routes_go_through_the_login_too(script):
    with ScriptedBroker(script, login=True) as broker, secured(broker, script) as client:
        assert client.resolve(Coordinator(TRANSACTION, "x"), client.deadline()) == 1
