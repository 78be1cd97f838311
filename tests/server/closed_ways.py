"""The ways in which an operator may have closed a server: doors, options, and the certificates and keys for these."""

import base64
import json
from pathlib import Path
from typing import Any, NamedTuple

import jwt
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs12

from exacta.config.pulsar_logins import METHODS
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.front.doors import Door, Endpoint, TransportSecurity

EVERYWHERE = Endpoint("0.0.0.0", 0)
TLS = TransportSecurity.TLS
CLASSES = {word: name for name, word in METHODS.items()}
RULES = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:root"}


class Closed(NamedTuple):
    """One way to be closed: the doors, and the options."""

    doors: list[Door]
    settings: dict[str, str]


def door(front: str, name: str, **more: Any) -> Door:
    return Door(**{"front": front, "name": name, "endpoint": EVERYWHERE, "security": TLS, **more})


KAFKA, KAFKA_SASL = door("kafka", "SSL"), door("kafka", "SASL_SSL", login=True)
KAFKA_PLAIN = door("kafka", "PLAINTEXT", security=TransportSecurity.PLAINTEXT)
PULSAR, WEB = door("pulsar", "PULSAR_TLS"), door("web", "WEB_TLS")


class Made:
    """Certificates, keys and the ways to be closed that are made of them."""

    def __init__(self, folder: Path) -> None:
        self.authority, stranger = trustme.CA(), trustme.CA()
        self.certificates = {
            "nobody's": None,
            "mallory's": self.authority.issue_cert(common_name="mallory"),
            "a stranger's": stranger.issue_cert(common_name="root"),
        }
        issued = self.authority.issue_cert("localhost")
        names = ("store.pem", "key.pem", "chain.pem", "ca.pem", "store.p12", "trust.p12", "keys.json")
        self._paths = {name: str(folder / name) for name in names}
        issued.private_key_and_cert_chain_pem.write_to_path(self._paths["store.pem"])
        issued.private_key_pem.write_to_path(self._paths["key.pem"])
        for blob in issued.cert_chain_pems:
            blob.write_to_path(self._paths["chain.pem"], append=True)
        self.authority.cert_pem.write_to_path(self._paths["ca.pem"])
        self._lock(issued)
        pem = {"ssl.keystore.location": self._paths["store.pem"], "ssl.truststore.location": self._paths["ca.pem"]}
        self.closed = {**self._by_certificates(pem), **self._by_logins(pem), **self._by_pulsars_names(pem)}

    def _lock(self, issued: trustme.LeafCert) -> None:
        key: Any = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
        certificate = x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
        own = x509.load_pem_x509_certificate(self.authority.cert_pem.bytes())
        locked = serialization.BestAvailableEncryption(b"hush")
        store = pkcs12.serialize_key_and_certificates(b"k", key, certificate, [own], locked)
        Path(self._paths["store.p12"]).write_bytes(store)
        trusted = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(own, b"ca")], locked)
        Path(self._paths["trust.p12"]).write_bytes(trusted)
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
        self._locked_key: str = pem.decode()

    def _by_certificates(self, pem: dict[str, str]) -> dict[str, Closed]:
        doors = [KAFKA, PULSAR, WEB]
        required = {"ssl.client.auth": "required", **RULES}
        certificates = {
            **pem,
            **required,
            "ssl.keystore.type": "PEM",
            "ssl.truststore.type": "PEM",
            "ssl.enabled.protocols": "TLSv1.3",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/",
        }
        in_pkcs12 = {
            **required,
            "ssl.keystore.location": self._paths["store.p12"],
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.password": "hush",
            "ssl.truststore.location": self._paths["trust.p12"],
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.password": "hush",
        }
        as_text = {
            **required,
            "ssl.keystore.key": self._locked_key,
            "ssl.key.password": "hush",
            "ssl.keystore.certificate.chain": Path(self._paths["chain.pem"]).read_text(),
            "ssl.truststore.certificates": Path(self._paths["ca.pem"]).read_text(),
        }
        named = {**pem, **RULES, "allow.anonymous": "PLAINTEXT,WEB_TLS"}
        return {
            "certificates": Closed(doors, certificates),
            "certificates in PKCS #12": Closed(doors, in_pkcs12),
            "certificates as text": Closed(doors, as_text),
            "doors that are named": Closed([KAFKA_PLAIN, WEB], named),
        }

    def _by_logins(self, pem: dict[str, str]) -> dict[str, Closed]:
        public = ed25519.Ed25519PrivateKey.generate().public_key()
        entry = jwt.get_algorithm_by_name("EdDSA").to_jwk(public, as_dict=True)
        keys = Path(self._paths["keys.json"])
        keys.write_text(json.dumps({"keys": [{**entry, "kid": "k"}]}))
        quick = {**pem, "connection.failed.authentication.delay.ms": "1"}
        passwords = {
            **quick,
            **RULES,
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "allow.everyone.if.no.acl.found": "true",
            "connections.max.reauth.ms": "60000",
            "sasl.server.max.receive.size": "2048",
        }
        tokens = {
            **pem,
            **RULES,
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            "sasl.oauthbearer.jwks.endpoint.refresh.ms": "60000",
            "sasl.oauthbearer.expected.issuer": "https://issuer.example",
            "sasl.oauthbearer.expected.audience": "exacta",
            "sasl.oauthbearer.sub.claim.name": "role",
            "sasl.oauthbearer.clock.skew.seconds": "1",
        }
        return {
            "passwords": Closed([KAFKA_SASL], passwords),
            "passwords without rules": Closed([KAFKA_SASL], {**quick, "sasl.enabled.mechanisms": "PLAIN"}),
            "tokens": Closed([KAFKA_SASL], tokens),
        }

    def _by_pulsars_names(self, pem: dict[str, str]) -> dict[str, Closed]:
        certificates = {
            "tlsCertificateFilePath": self._paths["chain.pem"],
            "tlsKeyFilePath": self._paths["key.pem"],
            "tlsTrustCertsFilePath": self._paths["ca.pem"],
            "tlsRequireTrustedClientCertOnConnect": "true",
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "superUserRoles": "root",
        }
        token = {**pem, **RULES, "authenticationEnabled": "true", "authenticationProviders": CLASSES["token"]}
        by_secret = {
            **token,
            "tokenSecretKey": _data(bytes(64)),
            "tokenAuthClaim": "role",
            "tokenAudience": "exacta",
            "tokenAudienceClaim": "for",
            "pulsar.token.require.expiry": "false",
            "authenticationRefreshCheckSeconds": "30",
        }
        public = rsa.generate_private_key(65537, 2048).public_key()
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        by_key = {**token, "tokenPublicKey": _data(public.public_bytes(serialization.Encoding.DER, form))}
        without_rules = {k: v for k, v in token.items() if k not in RULES} | {"tokenSecretKey": _data(bytes(64))}
        return {
            "Pulsar's tokens without rules": Closed([PULSAR], without_rules),
            "Pulsar's certificates": Closed([PULSAR, WEB], certificates),
            "Pulsar's tokens by a secret": Closed([PULSAR], by_secret),
            "Pulsar's tokens by a key": Closed([PULSAR], {**by_key, "tokenPublicAlg": "PS256"}),
        }


def _data(content: bytes) -> str:
    return "data:;base64," + base64.b64encode(content).decode()
