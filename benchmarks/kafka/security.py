"""Everything that a secured node needs, made in one folder: a certificate authority, certificates, accounts, listeners.

Owns the files (`ca.pem`, `server.pem`, `client.pem`, and `access.json` for clients) and the properties that
point a node at them. Beside its plain listener, which the nodes use among themselves and where everything is allowed,
a secured node has one for each protocol: `SSL` (client certificates required), `SASL_PLAINTEXT` and `SASL_SSL` (PLAIN,
SCRAM-SHA-256, SCRAM-SHA-512). An authorizer is on: `exacta` and the owner of the client certificate may do everything,
`stranger` nothing. The server's certificate is for the address only, so that `localhost` is a wrong host name.
"""

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
CERTIFICATE_OWNER = "exacta-certificate"
# Account names; the first may do everything, the second nothing.
ACCOUNTS = ("exacta", "stranger")
REAUTHENTICATION_MS = 2_000
"""A session by SCRAM-SHA-512 over SASL_PLAINTEXT lasts for so long (KIP-368); all others last for ever."""


@dataclass(frozen=True, kw_only=True)
class Secured:
    """A folder with everything that secured nodes and their clients need."""

    folder: Path
    accounts: Mapping[str, str]

    @classmethod
    def at(cls, folder: Path, host: str) -> "Secured":
        """Return what `folder` holds, making it first where there is nothing; `host` is an address of the nodes."""
        folder = folder.resolve()
        stored = folder / "accounts.json"
        if not stored.exists():
            folder.mkdir(parents=True, exist_ok=True)
            authority = trustme.CA()
            authority.cert_pem.write_to_path(folder / "ca.pem")
            _write_identity(authority.issue_cert(host), folder / "server.pem")
            _write_identity(
                authority.issue_cert("client.invalid", common_name=CERTIFICATE_OWNER), folder / "client.pem"
            )
            _write_secret(stored, json.dumps({name: secrets.token_urlsafe(18) for name in ACCOUNTS}).encode())
        return cls(folder=folder, accounts=json.loads(stored.read_text()))

    def properties(self) -> list[str]:
        """Return the lines of server.properties, all but the listeners themselves."""
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        for name, password in self.accounts.items():
            plain += f' user_{name}="{password}"'
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required"
        lines = [
            "ssl.keystore.type=PEM",
            f"ssl.keystore.location={self.folder / 'server.pem'}",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={self.folder / 'ca.pem'}",
            "listener.name.ssl.ssl.client.auth=required",
            r"ssl.principal.mapping.rules=RULE:^CN=([^,]+),.*$/$1/,DEFAULT",
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            # Plain connections are anonymous: the nodes themselves, and the preparation of a test.
            f"super.users=User:ANONYMOUS;User:{ACCOUNTS[0]};User:{CERTIFICATE_OWNER}",
            f"listener.name.sasl_plaintext.scram-sha-512.connections.max.reauth.ms={REAUTHENTICATION_MS}",
        ]
        for listener in ("sasl_plaintext", "sasl_ssl"):
            lines.append(f"listener.name.{listener}.sasl.enabled.mechanisms={','.join(MECHANISMS)}")
            for mechanism in MECHANISMS:
                module = plain if mechanism == "PLAIN" else scram
                lines.append(f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config={module};")
        return lines

    def format_arguments(self) -> list[str]:
        """Return what the storage tool must be told to create the accounts of SCRAM."""
        arguments = []
        for mechanism in MECHANISMS[1:]:
            for name, password in self.accounts.items():
                arguments += ["--add-scram", f"{mechanism}=[name={name},password={password}]"]
        return arguments

    def write_access(self, listeners: Mapping[str, str]) -> Path:
        """Write `access.json`: bootstrap servers by protocol, accounts and file names; return its path."""
        access = self.folder / "access.json"
        content = {
            "listeners": dict(listeners),
            "accounts": dict(self.accounts),
            "ca": str(self.folder / "ca.pem"),
            "client": str(self.folder / "client.pem"),
        }
        _write_secret(access, json.dumps(content, indent=2).encode())
        return access


def _write_identity(certificate: trustme.LeafCert, path: Path) -> None:
    """Write key and chain into one file; Kafka reads keys as PKCS #8 only."""
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    parts: Sequence[bytes] = [
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        *(each.bytes() for each in certificate.cert_chain_pems),
    ]
    _write_secret(path, b"".join(parts))


def _write_secret(path: Path, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
