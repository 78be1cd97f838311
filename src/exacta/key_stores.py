"""Keystores and truststores as Kafka knows them, in PEM, which Python's ssl takes: read from PEM or PKCS #12.

This module owns the forms. It knows no option and no connection: server and client say which files are meant. JKS is
a format of Java's own; it is recognised and refused with the command that converts it. The package for PKCS #12 is
loaded only where there is such a store.

A key that was protected never lies on a disk in the clear. Out of PKCS #12 it comes encrypted with a password that is
used once. Python's ssl takes keys from files only: the file is one of memory where the system has these, or else ours
alone, and gone again at once.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shlex
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

PEM = "PEM"
PKCS12 = "PKCS12"
JKS = "JKS"

_JKS_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")  # JKS, JCEKS
_PEM_BEGIN = b"-----BEGIN"
_CERTIFICATE = re.compile(r"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----([^-]*)-----END")


class StoreError(Exception):
    """A store that cannot be read; the message is one sentence, and shows no secret."""


def convert_jks(location: str) -> str:
    """Return the sentence for a store in Java's own format."""
    source, target = shlex.quote(location), shlex.quote(str(Path(location).with_suffix(".p12")))
    return (
        f"'{location}' is a store in Java's own format (JKS), which is not read here; convert it once with: keytool "
        f"-importkeystore -srckeystore {source} -destkeystore {target} -deststoretype PKCS12"
    )


def kind_of(content: bytes, kind: str | None, location: str) -> str:
    """Return PEM or PKCS12; the content decides where no kind was said. Raises StoreError for JKS."""
    if kind == JKS or content.startswith(_JKS_MAGIC):
        raise StoreError(convert_jks(location))
    return kind or (PEM if _PEM_BEGIN in content else PKCS12)


def trusted_in_pkcs12(name: str, content: bytes, password: str | None) -> str:
    """Return the certificates of a store in PKCS #12, in PEM. Raises StoreError, which calls the store `name`."""
    store = _open_pkcs12(name, content, password)
    from cryptography.hazmat.primitives.serialization import Encoding

    held = [*([store.cert] if store.cert else []), *store.additional_certs]
    return "".join(each.certificate.public_bytes(Encoding.PEM).decode() for each in held)


def identity_in_pkcs12(name: str, content: bytes, password: str | None) -> tuple[bytes, str]:
    """Return key and certificates of a store in PKCS #12, in PEM, and the password that opens this key.

    Raises StoreError.
    """
    # In PKCS #12 Java's key has the password of its store.
    held = _open_pkcs12(name, content, password)
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

    if held.key is None or held.cert is None:
        raise StoreError(f"{name} holds no private key with its certificate")
    sealed_with = secrets.token_urlsafe()
    key = held.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(sealed_with.encode()))
    chain = [held.cert, *held.additional_certs]
    return key + b"".join(each.certificate.public_bytes(Encoding.PEM) for each in chain), sealed_with


def load_trusted(context: ssl.SSLContext, name: str, pem: str) -> None:
    """Let `context` trust these certificates. Raises StoreError, which calls the store `name`, also without any."""
    try:
        # Between certificates a file may say whose they are, in any script.
        context.load_verify_locations(cadata=pem.encode("ascii", errors="ignore").decode())
    except (ssl.SSLError, ValueError) as error:
        raise StoreError(f"{name} holds no certificate in PEM that can be read: {_reason(error)}") from error


def certificates_in(pem: str) -> frozenset[bytes]:
    """Return the certificates in a text that OpenSSL has read, in a form in which equal ones are equal."""
    return frozenset("".join(found.split()).encode() for found in _CERTIFICATE.findall(pem))


def load_identity(context: ssl.SSLContext, name: str, pem: bytes, password: str | None, option: str = "") -> None:
    """Let `context` answer with this key and these certificates. Raises StoreError, which calls the store `name`.

    `password` opens the key; None: it has none. `option` is what a user gives it by; empty: it is none of the user's.
    """
    with _file_with(pem) as path:
        try:
            # A function in every case: without one, OpenSSL would ask on the terminal for the password of a key.
            context.load_cert_chain(path, password=lambda: password or "")
        except (ssl.SSLError, ValueError) as error:
            reason = _reason(error)
            if option and b"ENCRYPTED" in pem:
                reason = f"is {option} right? {reason}" if password else f"its key has a password: set {option}"
            raise StoreError(f"{name} holds no private key with its certificate in PEM: {reason}") from error


def _reason(error: Exception) -> str:
    return (getattr(error, "reason", None) or str(error)).lower().replace("_", " ")


@contextlib.contextmanager
def _file_with(content: bytes) -> Iterator[str]:
    if hasattr(os, "memfd_create") and os.path.exists("/proc/self/fd"):
        handle = os.memfd_create("exacta-key", os.MFD_CLOEXEC)
        try:
            with open(handle, "wb", closefd=False) as file:
                file.write(content)
            yield f"/proc/self/fd/{handle}"
        finally:
            os.close(handle)
    else:
        with tempfile.NamedTemporaryFile(prefix="exacta-", suffix=".pem") as file:  # mode 0600
            file.write(content)
            file.flush()
            yield file.name


def _open_pkcs12(name: str, content: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError as error:
        raise StoreError(f"{name} is in PKCS12, which needs Python's package 'cryptography'; or use PEM") from error
    try:
        return load_pkcs12(content, None if password is None else password.encode())
    except ValueError as error:
        raise StoreError(f"{name} cannot be opened as PKCS12: wrong password, or another format") from error
