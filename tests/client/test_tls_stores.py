"""Truststores and keystores: their forms, their renewal, and the errors of those that cannot be read."""

import ssl
from pathlib import Path

import pytest
from benchmarks.kafka.security import Secured

from exacta.client.errors import TlsFailed
from exacta.client.security import KeyStore, Tls, TrustStore
from exacta.client.tls_stores import identify
from exacta.key_stores import convert_jks
from tests.client.secured import ScriptedBroker, nodes_with, server_context


def test_certificates_that_were_renewed_are_read_again(script, tmp_path):
    """Executors live longer than certificates do in some places."""
    first, second = Secured.at(tmp_path / "a", "127.0.0.1"), Secured.at(tmp_path / "b", "127.0.0.1")
    ca = tmp_path / "ca.pem"
    ca.write_bytes((first.folder / "ca.pem").read_bytes())
    tls = Tls(truststore=TrustStore(location=str(ca)))
    with ScriptedBroker(script, context=server_context(first.folder)) as broker:
        assert nodes_with(broker, tls) == [1]
    with ScriptedBroker(script, context=server_context(second.folder)) as broker:
        with pytest.raises(TlsFailed):
            nodes_with(broker, tls)
        ca.write_bytes((second.folder / "ca.pem").read_bytes())
        assert nodes_with(broker, tls) == [1]


@pytest.fixture
def tls_broker(script, certificates):
    context = server_context(certificates.folder, client_certificate=True)
    with ScriptedBroker(script, context=context) as broker:
        yield broker


def test_stores_as_text(tls_broker, certificates):
    key, chain = split_pem(certificates.folder / "client.pem")
    tls = Tls(
        truststore=TrustStore(certificates=(certificates.folder / "ca.pem").read_text()),
        keystore=KeyStore(key=key, certificate_chain=chain),
    )
    assert nodes_with(tls_broker, tls) == [1]


def split_pem(path):
    key, marker, chain = path.read_text().partition("-----BEGIN CERTIFICATE-----")
    return key, marker + chain


def _private_key(pem):
    """Return the key, which is of a kind that certificates have."""
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(pem.encode(), None)
    assert isinstance(key, EllipticCurvePrivateKey | RSAPrivateKey)
    return key


def test_stores_in_pkcs12(tls_broker, certificates, tmp_path):
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
    from cryptography.x509 import load_pem_x509_certificate, load_pem_x509_certificates

    key, chain = split_pem(certificates.folder / "client.pem")
    own, *others = load_pem_x509_certificates(chain.encode())
    encryption = BestAvailableEncryption(b"store-secret")
    keystore = tmp_path / "client.p12"
    keystore.write_bytes(
        pkcs12.serialize_key_and_certificates(b"client", _private_key(key), own, others or None, encryption)
    )
    ca = load_pem_x509_certificate((certificates.folder / "ca.pem").read_bytes())
    truststore = tmp_path / "trust.p12"
    truststore.write_bytes(
        pkcs12.serialize_java_truststore(
            [pkcs12.PKCS12Certificate(ca, b"ca")], BestAvailableEncryption(b"trust-secret")
        )
    )
    tls = Tls(
        truststore=TrustStore(location=str(truststore), password="trust-secret"),
        keystore=KeyStore(location=str(keystore), kind="PKCS12", password="store-secret"),
    )
    assert nodes_with(tls_broker, tls) == [1]
    wrong = Tls(truststore=TrustStore(location=str(truststore), password="no-secret"))
    with pytest.raises(TlsFailed, match=r"trust\.p12' cannot be opened as PKCS12: wrong password"):
        nodes_with(tls_broker, wrong)


def test_the_key_of_a_pkcs12_store_is_in_no_file_without_a_password(certificates, tmp_path):
    """It passes through a file, which stays behind where the process is killed in that moment."""
    from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12
    from cryptography.x509 import load_pem_x509_certificate

    key, chain = split_pem(certificates.folder / "client.pem")
    keystore = tmp_path / "client.p12"
    keystore.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"client",
            _private_key(key),
            load_pem_x509_certificate(chain.encode()),
            None,
            NoEncryption(),
        )
    )
    files, passwords = [], set()

    class Watched(ssl.SSLContext):
        def load_cert_chain(self, certfile, keyfile=None, password=None):
            assert keyfile is None
            assert callable(password)
            files.append(Path(certfile).read_bytes())
            passwords.add(password())
            super().load_cert_chain(certfile, password=password)

    for _ in range(2):
        identify(Watched(ssl.PROTOCOL_TLS_CLIENT), KeyStore(location=str(keystore)))
    assert all(b"BEGIN ENCRYPTED PRIVATE KEY" in content for content in files)
    assert not any(b"BEGIN PRIVATE KEY" in content for content in files)
    assert len(passwords) == 2, "each is used once"


def test_a_key_that_is_encrypted(tls_broker, certificates, tmp_path):
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    key, chain = split_pem(certificates.folder / "client.pem")
    encrypted = load_pem_private_key(key.encode(), None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"key-secret")
    )
    keystore = tmp_path / "client.pem"
    keystore.write_text(encrypted.decode() + chain)
    trust = TrustStore(location=str(certificates.folder / "ca.pem"))
    opened = KeyStore(location=str(keystore), key_password="key-secret")
    assert nodes_with(tls_broker, Tls(truststore=trust, keystore=opened)) == [1]
    for password in (None, "no-secret"):
        with pytest.raises(TlsFailed, match=r"(is|set) option 'kafka\.ssl\.key\.password'"):
            nodes_with(
                tls_broker, Tls(truststore=trust, keystore=KeyStore(location=str(keystore), key_password=password))
            )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\xfe\xed\xfe\xed\0\0\0\x02", "convert it once with: keytool -importkeystore -srckeystore "),
        (
            b"-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n",
            "holds no certificate in PEM that can be read",
        ),
        (b"0\x82\0\0", "cannot be opened as PKCS12: wrong password, or another format"),
        (None, "cannot be read on this machine: No such file or directory"),
    ],
)
def test_stores_that_cannot_be_read(tls_broker, tmp_path, content, sentence):
    store = tmp_path / "trust.jks"
    if content is not None:
        store.write_bytes(content)
    with pytest.raises(TlsFailed) as refused:
        nodes_with(tls_broker, Tls(truststore=TrustStore(location=str(store))))
    assert sentence in str(refused.value)


def test_the_command_that_converts_a_java_keystore():
    assert convert_jks("/a/b.jks").endswith(
        "keytool -importkeystore -srckeystore /a/b.jks -destkeystore /a/b.p12 -deststoretype PKCS12"
    )


def test_the_machines_own_authorities_are_trusted_where_there_is_no_truststore(monkeypatch, script, certificates):
    loaded = []
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda *_: loaded.append(1))
    with ScriptedBroker(script, context=server_context(certificates.folder)) as broker:
        with pytest.raises(TlsFailed, match="not trusted"):
            nodes_with(broker, Tls(verify_host_name=False))
        assert loaded == [1]
