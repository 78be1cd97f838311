"""Truststores and keystores as Kafka's clients know them, put into an SSL context: PEM and PKCS #12, files or text.

This module owns the reading of them and what is said where one cannot be read. JKS is a format of Java's own; it is
recognised and refused with the command that converts it. The package for PKCS #12 is loaded only where there is such a
store. Every error is one sentence and shows no secret.
"""

from __future__ import annotations

import secrets
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from exacta.client.errors import TlsFailed
from exacta.client.security import JKS, PEM, PKCS12, KeyStore, TrustStore

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

_JKS_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")  # JKS, JCEKS
_PEM_BEGIN = b"-----BEGIN"


def trust(context: ssl.SSLContext, store: TrustStore | None) -> None:
    """Let `context` trust what `store` holds, or what the machine trusts where it is None; raises `TlsFailed`."""
    if store is None:
        context.load_default_certs()
        return
    name, text = trusted(store)
    try:
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError) as error:
        raise TlsFailed(f"{name} holds no certificate in PEM that can be read: {_reason(error)}") from error


def trusted(store: TrustStore) -> tuple[str, str]:
    """Return what a store is called in messages, and the certificates that it holds, in PEM; raises `TlsFailed`."""
    if store.certificates is not None:
        return "option 'kafka.ssl.truststore.certificates'", store.certificates
    assert store.location is not None
    name = f"the truststore '{store.location}'"
    content = _read(name, store.location)
    if _kind(content, store.kind, store.location) == PKCS12:
        return name, _trusted_in_pkcs12(name, content, store.password)
    return name, content.decode("ascii", errors="replace")


def identify(context: ssl.SSLContext, store: KeyStore) -> None:
    """Let `context` answer for us with the key and certificates of `store`; raises `TlsFailed`."""
    name = "option 'kafka.ssl.keystore.key' with 'kafka.ssl.keystore.certificate.chain'"
    password = store.key_password
    if store.location is None:
        pem = f"{store.key}\n{store.certificate_chain}\n".encode()
    else:
        name = f"the keystore '{store.location}'"
        pem = _read(name, store.location)
        if _kind(pem, store.kind, store.location) == PKCS12:
            # What a process that is killed leaves behind must not be the key without a password.
            password = secrets.token_urlsafe()
            pem = _identity_in_pkcs12(name, pem, store, password)
    # The ssl module takes keys from files only; this one is ours alone, and gone again at once.
    with tempfile.NamedTemporaryFile(prefix="exacta-", suffix=".pem") as file:
        file.write(pem)
        file.flush()
        try:
            # A function in every case: without one, OpenSSL would ask on the terminal for the password of a key.
            context.load_cert_chain(file.name, password=lambda: password or "")
        except (ssl.SSLError, ValueError) as error:
            encrypted = password == store.key_password and b"ENCRYPTED" in pem
            hint = "is option 'kafka.ssl.key.password' right? " if encrypted else ""
            raise TlsFailed(f"{name} holds no key with its certificate that can be read: {hint}{_reason(error)}") from (
                error
            )


def is_pkcs12(store: KeyStore) -> bool:
    """Say whether a keystore's file is in PKCS #12; raises `TlsFailed` where it cannot be read, or is in JKS."""
    assert store.location is not None
    content = _read(f"the keystore '{store.location}'", store.location)
    return _kind(content, store.kind, store.location) == PKCS12


def convert_jks(location: str) -> str:
    """Return the sentence for a store in Java's own format."""
    target = str(Path(location).with_suffix(".p12"))
    return (
        f"'{location}' is a store in Java's own format (JKS), which is not read here; convert it once with: keytool "
        f"-importkeystore -srckeystore {location} -destkeystore {target} -deststoretype PKCS12"
    )


def _read(name: str, location: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise TlsFailed(f"{name} cannot be read on this machine: {error.strerror}") from error


def _kind(content: bytes, kind: str | None, location: str) -> str:
    """Return PEM or PKCS12; what is in the file decides where nothing was said."""
    if kind == JKS or content.startswith(_JKS_MAGIC):
        raise TlsFailed(convert_jks(location))
    return kind or (PEM if _PEM_BEGIN in content else PKCS12)


def _trusted_in_pkcs12(name: str, content: bytes, password: str | None) -> str:
    store = _open_pkcs12(name, content, password)
    from cryptography.hazmat.primitives.serialization import Encoding

    held = [*([store.cert] if store.cert else []), *store.additional_certs]
    return "".join(each.certificate.public_bytes(Encoding.PEM).decode() for each in held)


def _identity_in_pkcs12(name: str, content: bytes, store: KeyStore, password: str) -> bytes:
    """Return the key, encrypted with `password`, and the certificates of a store, in PEM."""
    # In PKCS #12 Java's key has the password of its store.
    held = _open_pkcs12(name, content, store.password)
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

    if held.key is None or held.cert is None:
        raise TlsFailed(f"{name} holds no private key with its certificate")
    key = held.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
    chain = [held.cert, *held.additional_certs]
    return key + b"".join(each.certificate.public_bytes(Encoding.PEM) for each in chain)


def _open_pkcs12(name: str, content: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError as error:
        raise TlsFailed(f"{name} is in PKCS12, which needs Python's package 'cryptography'; or use PEM") from error
    try:
        return load_pkcs12(content, None if password is None else password.encode())
    except ValueError as error:
        raise TlsFailed(f"{name} cannot be opened as PKCS12: wrong password, or another format") from error


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error)
