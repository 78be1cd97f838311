"""Truststores and keystores as Kafka's clients know them, put into an SSL context: PEM and PKCS #12, files or text.

This module owns what is said where one cannot be read; `exacta.key_stores` reads them. Every error is one sentence and
shows no secret.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from exacta.client.errors import TlsFailed
from exacta.client.security import KeyStore, TrustStore
from exacta.key_stores import (
    PKCS12,
    StoreError,
    identity_in_pkcs12,
    kind_of,
    load_identity,
    load_trusted,
    trusted_in_pkcs12,
)

if TYPE_CHECKING:
    import ssl


def trust(context: ssl.SSLContext, store: TrustStore | None) -> None:
    """Let `context` trust what `store` holds, or what the machine trusts where it is None; raises `TlsFailed`."""
    if store is None:
        context.load_default_certs()
        return
    name, text = trusted(store)
    try:
        load_trusted(context, name, text)
    except StoreError as error:
        raise TlsFailed(str(error)) from error


def trusted(store: TrustStore) -> tuple[str, str]:
    """Return what a store is called in messages, and the certificates that it holds, in PEM; raises `TlsFailed`."""
    if store.certificates is not None:
        return "option 'kafka.ssl.truststore.certificates'", store.certificates
    assert store.location is not None
    name = f"the truststore '{store.location}'"
    content = _read(name, store.location)
    try:
        if kind_of(content, store.kind, store.location) == PKCS12:
            return name, trusted_in_pkcs12(name, content, store.password)
    except StoreError as error:
        raise TlsFailed(str(error)) from error
    return name, content.decode("ascii", errors="replace")


def identify(context: ssl.SSLContext, store: KeyStore) -> None:
    """Let `context` answer for us with the key and certificates of `store`; raises `TlsFailed`."""
    name = "option 'kafka.ssl.keystore.key' with 'kafka.ssl.keystore.certificate.chain'"
    password, option = store.key_password, "option 'kafka.ssl.key.password'"
    try:
        if store.location is None:
            pem = f"{store.key}\n{store.certificate_chain}\n".encode()
        else:
            name = f"the keystore '{store.location}'"
            pem = _read(name, store.location)
            if kind_of(pem, store.kind, store.location) == PKCS12:
                pem, password = identity_in_pkcs12(name, pem, store.password)
                option = ""
        load_identity(context, name, pem, password, option)
    except StoreError as error:
        raise TlsFailed(str(error)) from error


def is_pkcs12(store: KeyStore) -> bool:
    """Say whether a keystore's file is in PKCS #12; raises `TlsFailed` where it cannot be read, or is in JKS."""
    assert store.location is not None
    content = _read(f"the keystore '{store.location}'", store.location)
    try:
        return kind_of(content, store.kind, store.location) == PKCS12
    except StoreError as error:
        raise TlsFailed(str(error)) from error


def _read(name: str, location: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise TlsFailed(f"{name} cannot be read on this machine: {error.strerror}") from error
