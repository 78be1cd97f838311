"""The TLS of a door: what its options say together, and the stores that it reads."""

import ssl
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

from exacta.config.errors import ConfigurationError
from exacta.config.options import configure
from exacta.key_stores import StoreError
from exacta.security.tls import ClientAuth, server_context, tls_settings
from tests.hidden import ALL, KEY_PASSWORD, TRUSTSTORE_PASSWORD


class Stores:
    """The stores of one server, in every form."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        issued = authority.issue_cert("localhost")
        key_pem, chain_pem = issued.private_key_pem.bytes(), issued.cert_chain_pems[0].bytes()
        key = load_pem_private_key(key_pem, None)
        assert isinstance(key, EllipticCurvePrivateKey)
        secret = BestAvailableEncryption(b"secret")
        ca = load_pem_x509_certificate(authority.cert_pem.bytes())
        self.key, self.chain, self.ca = key_pem.decode(), chain_pem.decode(), authority.cert_pem.bytes().decode()
        self.contents = {
            "both.pem": key_pem + "whose: Jürgen\n".encode() + chain_pem,
            "locked.pem": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret) + chain_pem,
            "key.pem": key_pem,
            "chain.pem": chain_pem,
            "other.pem": trustme.CA().issue_cert("localhost").private_key_pem.bytes() + chain_pem,
            "ca.pem": "die Stelle für alle:\n".encode() + authority.cert_pem.bytes(),
            "both.p12": pkcs12.serialize_key_and_certificates(
                b"server", key, load_pem_x509_certificate(chain_pem), [ca], secret
            ),
            "only.p12": pkcs12.serialize_key_and_certificates(None, None, None, [ca], secret),
            "ca.p12": pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(ca, b"ca")], secret),
            "java.jks": b"\xfe\xed\xfe\xed\0\0\0\x02",
            "nothing.pem": b"",
        }
        self.folder = folder
        for name, content in self.contents.items():
            (folder / name).write_bytes(content)

    def options(self, text: str) -> dict[str, str]:
        """Return options as they stand in a line; names of stores are in the folder, and capitals stand for texts."""
        found = dict(each.split("=", 1) for each in text.split())
        texts = {"KEY": self.key, "CHAIN": self.chain, "CA": self.ca}
        return {
            name: texts.get(value) or (str(self.folder / value) if value in {*self.contents, "nowhere.pem"} else value)
            for name, value in found.items()
        }


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return Stores(tmp_path_factory.mktemp("stores"))


KEYSTORE = "ssl.keystore.location=both.pem"


@pytest.mark.parametrize(
    ("text", "trusts"),
    [
        (KEYSTORE, 0),
        ("ssl.keystore.key=KEY ssl.keystore.certificate.chain=CHAIN", 0),
        ("ssl.keystore.location=locked.pem ssl.key.password=secret", 0),
        ("ssl.keystore.location=both.p12 ssl.keystore.password=secret", 0),
        ("ssl.keystore.location=both.p12 ssl.keystore.password=secret ssl.keystore.type=PKCS12", 0),
        (f"{KEYSTORE} ssl.truststore.location=ca.pem", 0),
        (f"{KEYSTORE} ssl.truststore.location=ca.pem ssl.client.auth=required", 1),
        (f"{KEYSTORE} ssl.truststore.certificates=CA ssl.client.auth=requested", 1),
        (f"{KEYSTORE} ssl.truststore.location=ca.p12 ssl.truststore.password=secret ssl.client.auth=required", 1),
        ("tlsCertificateFilePath=chain.pem tlsKeyFilePath=key.pem", 0),
        ("tlsCertificateFilePath=chain.pem tlsKeyFilePath=key.pem tlsTrustCertsFilePath=ca.pem", 1),
    ],
)
def test_stores_of_every_form_are_read(stores: Stores, text: str, trusts: int) -> None:
    context, _ = server_context(tls_settings(configure(stores.options(text)), "pulsar"))
    assert len(context.get_ca_certs()) == trusts
    assert (context.minimum_version, context.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ssl.keystore.location=nowhere.pem", "nowhere.pem: no such file or directory"),
        ("ssl.keystore.location=a\0b", "cannot read ssl.keystore.location: a\0b: embedded null byte"),
        ("ssl.keystore.location=locked.pem", "its key has a password: set ssl.key.password"),
        ("ssl.keystore.location=locked.pem ssl.key.password=other", "is ssl.key.password right? "),
        ("ssl.keystore.location=both.pem ssl.keystore.password=x", "is in PEM, which has no ssl.keystore.password"),
        ("ssl.keystore.location=other.pem", "no private key with its certificate in PEM: key values mismatch"),
        ("ssl.keystore.location=chain.pem", "no private key with its certificate in PEM: "),
        ("ssl.keystore.location=nothing.pem", "cannot be opened as PKCS12: wrong password, or another format"),
        ("ssl.keystore.location=both.p12", "cannot be opened as PKCS12: wrong password, or another format"),
        ("ssl.keystore.location=only.p12 ssl.keystore.password=secret", "holds no private key with its certificate"),
        ("ssl.keystore.location=java.jks", "convert it once with: keytool -importkeystore -srckeystore "),
        ("ssl.keystore.location=both.pem ssl.keystore.type=JKS", "convert it once with: keytool -importkeystore "),
        (
            f"{KEYSTORE} ssl.truststore.location=key.pem ssl.client.auth=required",
            "no certificate in PEM that can be read",
        ),
        (f"{KEYSTORE} ssl.truststore.location=java.jks ssl.client.auth=required", "convert it once with: keytool "),
    ],
)
def test_a_store_that_is_of_no_use_is_one_sentence_without_its_secret(stores: Stores, text: str, message: str) -> None:
    with pytest.raises(StoreError) as refused:
        server_context(tls_settings(configure(stores.options(text)), "kafka"))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "TLS needs a private key and its certificate: set ssl.keystore.location to a file with both"),
        ("ssl.keystore.key=KEY", "ssl.keystore.key and ssl.keystore.certificate.chain need each other"),
        (f"{KEYSTORE} ssl.keystore.key=KEY", "do not go together: give one of them"),
        (f"{KEYSTORE} ssl.truststore.location=ca.pem ssl.truststore.certificates=CA", "do not go together"),
        (
            f"{KEYSTORE} ssl.client.auth=required",
            "ssl.client.auth=required needs the authorities of the clients' certificates: set ssl.truststore.location",
        ),
        ("tlsCertificateFilePath=chain.pem", "tlsCertificateFilePath needs its private key: set tlsKeyFilePath"),
        (
            "tlsCertificateFilePath=chain.pem tlsKeyFilePath=key.pem tlsRequireTrustedClientCertOnConnect=true",
            "tlsRequireTrustedClientCertOnConnect=true needs the authorities of the clients' certificates: set "
            "tlsTrustCertsFilePath",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(stores: Stores, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        tls_settings(configure(stores.options(text)), "pulsar")
    assert message in str(refused.value)


@pytest.mark.parametrize("versions", ["TLSv1.1,TLSv1.2", "TLSv1", "SSLv3", "TLSv1.4"])
def test_no_old_tls_can_be_asked_for(versions: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^ssl\.enabled\.protocols cannot be "):
        configure({"ssl.enabled.protocols": versions})


def test_the_versions_that_are_spoken_can_be_named(stores: Stores) -> None:
    options = stores.options(f"{KEYSTORE} ssl.enabled.protocols=TLSv1.3")
    context, _ = server_context(tls_settings(configure(options), "kafka"))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3


def test_pulsars_names_are_for_pulsars_doors_only(stores: Stores) -> None:
    options = configure(stores.options(f"{KEYSTORE} tlsCertificateFilePath=chain.pem tlsKeyFilePath=key.pem"))
    for front, name in (("kafka", "ssl.keystore.location"), ("pulsar", "tlsC"), ("web", "tlsC")):
        assert tls_settings(options, front).keystore.name.startswith(name)
    required = configure(stores.options(f"{KEYSTORE} ssl.client.auth=required ssl.truststore.location=ca.pem"))
    assert tls_settings(required, "web").client_auth is ClientAuth.REQUIRED


def test_no_repr_shows_a_secret(stores: Stores) -> None:
    passwords = f"ssl.key.password={KEY_PASSWORD} ssl.truststore.password={TRUSTSTORE_PASSWORD}"
    options = configure(stores.options(f"ssl.keystore.key=KEY ssl.keystore.certificate.chain=CHAIN {passwords}"))
    shown = repr(options) + repr(tls_settings(options, "kafka"))
    assert ALL.found_in(shown) is None
    assert "PRIVATE" not in shown


def test_a_key_out_of_pkcs12_is_in_no_file_without_a_password(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """It passes through a file of memory; a file on a disk stays behind where the process is killed in that moment."""
    seen: list[tuple[str, bytes]] = []
    load = ssl.SSLContext.load_cert_chain

    def watched(self: ssl.SSLContext, path: str, *args: object, **kwargs: object) -> None:
        seen.append((path, Path(path).read_bytes()))
        load(self, path, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)
    settings = tls_settings(
        configure(stores.options("ssl.keystore.location=both.p12 ssl.keystore.password=secret")), "kafka"
    )
    server_context(settings)
    monkeypatch.delattr("os.memfd_create")  # as on macOS
    server_context(settings)
    [(in_memory, first), (on_disk, second)] = seen
    assert in_memory.startswith("/proc/self/fd/")
    assert not Path(on_disk).exists()
    for content in (first, second):
        assert b"BEGIN ENCRYPTED PRIVATE KEY" in content
        assert b"BEGIN PRIVATE KEY" not in content
