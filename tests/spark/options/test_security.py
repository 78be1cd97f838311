"""The options of TLS and SASL: what they amount to, and which of them do not go together."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exacta.client.security import Cluster, KeyStore, Sasl, Security, Tls, TrustStore
from exacta.spark import clients
from exacta.spark.options import OptionError, sink_options, source_options
from exacta.spark.options.jaas import parse_jaas
from exacta.spark.options.properties import cluster_by, read_properties

SERVERS = {"kafka.bootstrap.servers": "a:1", "topic": "t"}
SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="s3cret";'
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="s3cret";'
PEM = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
SCRAM_SSL = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "SCRAM-SHA-512",
    "kafka.sasl.jaas.config": SCRAM,
}


def ssl_options(**more):
    return {"kafka.security.protocol": "SSL", **{f"kafka.ssl.{name}": value for name, value in more.items()}}


def security_of(options):
    return sink_options({**SERVERS, **options}).security


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Security()),
        ({"kafka.security.protocol": "plaintext"}, Security()),
        ({"kafka.security.protocol": "ssl"}, Security(tls=Tls())),
        (SCRAM_SSL, Security(tls=Tls(), sasl=Sasl(mechanism="SCRAM-SHA-512", username="alice", password="s3cret"))),
        (
            {
                "kafka.security.protocol": "SASL_PLAINTEXT",
                "kafka.sasl.mechanism": "PLAIN",
                "kafka.sasl.jaas.config": PLAIN,
            },
            Security(sasl=Sasl(mechanism="PLAIN", username="alice", password="s3cret")),
        ),
        (
            ssl_options(
                **{
                    "truststore.location": "/t.p12",
                    "truststore.type": "pkcs12",
                    "truststore.password": "x",
                    "keystore.location": "/k.pem",
                    "key.password": "y",
                    "endpoint.identification.algorithm": "",
                }
            ),
            Security(
                tls=Tls(
                    truststore=TrustStore(location="/t.p12", kind="PKCS12", password="x"),
                    keystore=KeyStore(location="/k.pem", key_password="y"),
                    verify_host_name=False,
                )
            ),
        ),
        (
            ssl_options(**{"truststore.certificates": PEM, "keystore.key": PEM, "keystore.certificate.chain": PEM}),
            Security(
                tls=Tls(
                    truststore=TrustStore(certificates=PEM, kind="PEM"),
                    keystore=KeyStore(key=PEM, certificate_chain=PEM, kind="PEM"),
                )
            ),
        ),
    ],
)
def test_what_the_options_amount_to(options, expected):
    assert security_of(options) == expected


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kafka.security.protocol": "TLS"}, "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, not 'TLS'"),
        (
            {"kafka.sasl.mechanism": "PLAIN"},
            "'kafka.sasl.mechanism' has no effect with option 'kafka.security.protocol'",
        ),
        ({"kafka.sasl.jaas.config": PLAIN}, "PLAINTEXT: it needs SASL_PLAINTEXT or SASL_SSL"),
        ({"kafka.ssl.truststore.location": "/t"}, "PLAINTEXT: it needs SSL or SASL_SSL"),
        ({**SCRAM_SSL, "kafka.security.protocol": "SSL"}, "'kafka.sasl.mechanism' has no effect"),
        ({**SCRAM_SSL, "kafka.sasl.mechanism": "GSSAPI"}, "must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        (
            {**SCRAM_SSL, "kafka.sasl.mechanism": "PLAIN"},
            "PLAIN needs PlainLoginModule in option 'kafka.sasl.jaas.config'",
        ),
        ({**SCRAM_SSL, "kafka.sasl.jaas.config": PLAIN}, "SCRAM-SHA-512 needs ScramLoginModule"),
        ({"kafka.security.protocol": "SASL_SSL"}, "SASL_SSL needs option 'kafka.sasl.mechanism'"),
        (
            {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN"},
            "SASL_SSL needs option 'kafka.sasl.jaas.config'",
        ),
        (ssl_options(**{"truststore.location": "/t", "truststore.certificates": PEM}), "only one of the options"),
        (ssl_options(**{"truststore.password": "x"}), "needs option 'kafka.ssl.truststore.location'"),
        (
            ssl_options(**{"truststore.location": "/t", "truststore.type": "PEM", "truststore.password": "x"}),
            "'kafka.ssl.truststore.password' is not for PEM",
        ),
        (
            ssl_options(**{"truststore.location": "/t.jks", "truststore.type": "JKS"}),
            "keytool -importkeystore -srckeystore /t.jks -destkeystore /t.p12 -deststoretype PKCS12",
        ),
        (ssl_options(**{"truststore.type": "DER"}), "must be one of PEM, PKCS12, JKS"),
        (ssl_options(**{"truststore.certificates": "/ca.pem"}), "must be the PEM text itself"),
        (ssl_options(**{"truststore.certificates": PEM, "truststore.type": "PKCS12"}), "can only be PEM"),
        (ssl_options(**{"keystore.key": PEM}), "need each other"),
        (ssl_options(**{"keystore.key": PEM, "keystore.location": "/k"}), "only one of the options"),
        (
            ssl_options(**{"keystore.location": "/k", "keystore.type": "PKCS12"}),
            "needs option 'kafka.ssl.keystore.passw",
        ),
        (
            ssl_options(
                **{
                    "keystore.location": "/k",
                    "keystore.type": "PKCS12",
                    "keystore.password": "s3cret",
                    "key.password": "s4cret",
                }
            ),
            "'kafka.ssl.key.password' must be the store's password",
        ),
        (ssl_options(**{"key.password": "x"}), "'kafka.ssl.key.password' needs option 'kafka.ssl.keystore.location'"),
        (ssl_options(**{"endpoint.identification.algorithm": "ldaps"}), "must be https or empty"),
        ({"kafka.request.timeout.ms": "soon"}, "must be a positive whole number"),
    ],
)
def test_what_does_not_go_together(options, sentence):
    with pytest.raises(OptionError) as refused:
        security_of(options)
    assert sentence in str(refused.value)
    assert "cret" not in str(refused.value)


def test_reading_and_writing_have_the_same():
    more = {**SCRAM_SSL, "kafka.client.id": "me", "kafka.request.timeout.ms": "5000"}
    sink = sink_options({**SERVERS, **more})
    source = source_options({"kafka.bootstrap.servers": "a:1", "subscribe": "t", **more})
    assert sink.cluster == source.cluster
    assert (sink.cluster.client_id, sink.cluster.request_timeout_ms) == ("me", 5000)
    assert pickle.loads(pickle.dumps(sink)) == sink  # it travels to the tasks
    assert "s3cret" not in repr(sink) + repr(source)


def test_a_client_is_kept_by_cluster_and_user(monkeypatch):
    monkeypatch.setattr(clients, "_clients", {})
    alice = sink_options({**SERVERS, **SCRAM_SSL}).cluster
    nobody = sink_options(SERVERS).cluster
    client = clients.client_of(alice)
    assert clients.client_of(alice) is client
    assert clients.client_of(nobody) is not client
    assert client.cluster == alice
    assert client.deadline().request_timeout_ms == alice.request_timeout_ms


@pytest.mark.parametrize(
    ("value", "module", "username", "password"),
    [
        (SCRAM, "ScramLoginModule", "alice", "s3cret"),
        (PLAIN.replace('"', "'"), "PlainLoginModule", "alice", "s3cret"),
        ("kafkashaded." + PLAIN, "PlainLoginModule", "alice", "s3cret"),
        (SCRAM.replace('"s3cret"', r'"a\"b\\c;=\'d\t\101"'), "ScramLoginModule", "alice", "a\"b\\c;='d\tA"),
        (
            "org.apache.kafka.common.security.plain.PlainLoginModule\n"
            "REQUIRED // who\n  username=alice /* and */ password=x$y-z ;\n",
            "PlainLoginModule",
            "alice",
            "x$y-z",
        ),
    ],
)
def test_a_login_as_jaas_has_it(value, module, username, password):
    login = parse_jaas("o", value)
    assert (login.module, login.username, login.password) == (module, username, password)
    assert password not in repr(login)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("", "must begin with a login module"),
        (SCRAM.removesuffix(";"), "must end with a semicolon"),
        (SCRAM.replace("required", "please"), "must say 'required'"),
        (SCRAM.replace(' password="s3cret"', ""), "sets no password"),
        (SCRAM.replace('username="alice"', 'username=""'), "sets no username"),
        (SCRAM.replace('username="alice"', 'username "alice"'), 'must go on with key="value" pairs'),
        (SCRAM.replace('"alice"', '"alice'), "a quote that is not closed"),
        (SCRAM.replace("username", 'tokenauth="true" username'), "sets 'tokenauth', which has no effect here"),
        (SCRAM + SCRAM, "and hold one entry"),
        (
            "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;",
            "names login module 'com.sun.security.auth.module.Krb5LoginModule'; known are org.apache.kafka",
        ),
        (SCRAM.replace("ScramLoginModule", "ScramLoginModuleX"), "names login module"),
    ],
)
def test_logins_that_are_refused(value, sentence):
    with pytest.raises(OptionError) as refused:
        parse_jaas("kafka.sasl.jaas.config", value)
    assert sentence in str(refused.value)
    assert "s3cret" not in str(refused.value)


@given(st.text(st.characters(exclude_characters="\n", codec="utf-8"), min_size=1))
def test_any_password_can_be_quoted(password):
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    assert parse_jaas("o", SCRAM.replace("s3cret", quoted)).password == password


def test_the_file_that_kafkas_tools_take(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text(
        "# ours\n! and theirs\n\nsecurity.protocol = SASL_SSL\nsasl.mechanism:SCRAM-SHA-512\nbootstrap.servers=b:2\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '    username="alice" password="s3cret";\n'
        "ssl.truststore.location /a\\u0062\\:c\nlinger.ms=5\nmax.poll.records=1\n"
    )
    expected = Security(
        tls=Tls(truststore=TrustStore(location="/ab:c")),
        sasl=Sasl(mechanism="SCRAM-SHA-512", username="alice", password="s3cret"),
    )
    assert cluster_by("a:1", read_properties(file), client_id="me") == (
        Cluster(bootstrap="a:1", security=expected, client_id="me"),
        ["linger.ms", "max.poll.records"],
    )
    assert cluster_by("a:1", {}, client_id="me") == (Cluster(bootstrap="a:1", client_id="me"), [])


def test_what_is_not_about_the_connection_is_passed_over_as_by_kafkas_tools(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("linger.ms=5\nrequest.timeout.ms=7000\nnonsense\n")
    cluster, passed_over = cluster_by("a:1", read_properties(file), client_id="me")
    assert (cluster.request_timeout_ms, passed_over) == (7000, ["linger.ms", "nonsense"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sasl.mechanism=PLAIN", "'kafka.sasl.mechanism' has no effect"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_is_refused(tmp_path, text, sentence):
    file = tmp_path / "client.properties"
    if text is not None:
        file.write_text(text)
    with pytest.raises(OptionError, match=sentence):
        cluster_by("a:1", read_properties(file), client_id="me")
