"""The TLS of one door: what its options say, and the context for its connections.

This module owns the meaning of Kafka's `ssl.*` and of Pulsar's `tls*`, and what is said where they are of no use. Doors
of Pulsar and HTTP have Pulsar's names where `tlsCertificateFilePath` is set, and Kafka's otherwise. `exacta.key_stores`
reads the stores.

Where clients are asked for certificates, no session is resumed: a resumed one would bring the certificate of before
along, which may have expired, or may not be accepted any more.
"""

import ssl
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from exacta.config.errors import ConfigurationError
from exacta.config.tls import TlsOptions
from exacta.extras import install_extra
from exacta.key_stores import (
    PEM,
    PKCS12,
    StoreError,
    certificates_in,
    identity_in_pkcs12,
    kind_of,
    load_identity,
    load_trusted,
    trusted_in_pkcs12,
)
from exacta.security.alerts import ServerContext
from exacta.security.principal_rules import PrincipalRules, RuleError

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class ClientAuth(Enum):
    """The ways to ask clients for certificates; the values are Kafka's words."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


# Dataclasses, since a `Struct` cannot leave a secret out of its repr.


@dataclass(frozen=True, kw_only=True)
class Store:
    """A keystore or a truststore: one file or several, or text."""

    name: str
    """The words for it in messages."""
    files: tuple[str, ...] = ()
    text: str = field(default="", repr=False)
    kind: str = ""
    password: str = field(default="", repr=False)

    def read(self) -> tuple[bytes, str]:
        """Return the content and its kind. Raises StoreError."""
        content = self.text.encode()
        for file in self.files:
            try:
                content += Path(file).read_bytes() + b"\n"
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                raise StoreError(f"cannot read {self.name}: {file}: {reason.lower()}") from error
        location = self.files[0] if self.files else self.name
        if len(self.files) == 1:
            content = content[:-1]  # PKCS #12 has no line at its end
        return content, kind_of(content, self.kind or None, location)


@dataclass(frozen=True, kw_only=True)
class TlsSettings:
    """The TLS of one door."""

    keystore: Store
    key_password: str = field(default="", repr=False)
    truststore: Store | None = None
    client_auth: ClientAuth = ClientAuth.NONE
    versions: tuple[ssl.TLSVersion, ...] = tuple(_VERSIONS.values())
    rules: str = "DEFAULT"

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are read."""
        return self.keystore.files + (() if self.truststore is None else self.truststore.files)


def tls_settings(options: TlsOptions, front: str) -> TlsSettings:
    """Return the TLS of a front's doors. Raises ConfigurationError for options that do not go together."""
    by_pulsars = front != "kafka" and options.tlsCertificateFilePath
    found = _by_pulsars_names(options) if by_pulsars else _by_kafkas_names(options)
    if found.client_auth is not ClientAuth.NONE and found.truststore is None:
        asks, store = (
            ("tlsRequireTrustedClientCertOnConnect=true", "tlsTrustCertsFilePath")
            if by_pulsars
            else (f"ssl.client.auth={found.client_auth.value}", "ssl.truststore.location")
        )
        raise ConfigurationError(f"{asks} needs the authorities of the clients' certificates: set {store}")
    return found


def _by_pulsars_names(options: TlsOptions) -> TlsSettings:
    if not options.tlsKeyFilePath:
        raise ConfigurationError("tlsCertificateFilePath needs its private key: set tlsKeyFilePath")
    trusts = options.tlsTrustCertsFilePath
    client_auth = ClientAuth.REQUESTED if trusts else ClientAuth.NONE
    if options.tlsRequireTrustedClientCertOnConnect:
        client_auth = ClientAuth.REQUIRED
    return TlsSettings(
        keystore=Store(
            name="tlsCertificateFilePath and tlsKeyFilePath",
            files=(options.tlsKeyFilePath, options.tlsCertificateFilePath),
            kind=PEM,
        ),
        truststore=Store(name="tlsTrustCertsFilePath", files=(trusts,), kind=PEM) if trusts else None,
        client_auth=client_auth,
        versions=_versions(options),
        rules=options.ssl_principal_mapping_rules,
    )


def _by_kafkas_names(options: TlsOptions) -> TlsSettings:
    key, chain = options.ssl_keystore_key, options.ssl_keystore_certificate_chain
    if options.ssl_keystore_location:
        _refuse_beside("ssl.keystore.location", key or chain, "ssl.keystore.key and ssl.keystore.certificate.chain")
        keystore = Store(
            name="ssl.keystore.location",
            files=(options.ssl_keystore_location,),
            kind=options.ssl_keystore_type,
            password=options.ssl_keystore_password,
        )
    elif key and chain:
        _refuse_beside("ssl.keystore.key", options.ssl_keystore_password, "ssl.keystore.password")
        keystore = Store(name="ssl.keystore.key and ssl.keystore.certificate.chain", text=f"{key}\n{chain}\n", kind=PEM)
    elif key or chain:
        raise ConfigurationError("ssl.keystore.key and ssl.keystore.certificate.chain need each other")
    else:
        raise ConfigurationError(
            "TLS needs a private key and its certificate: set ssl.keystore.location to a file with both"
        )
    return TlsSettings(
        keystore=keystore,
        key_password=options.ssl_key_password,
        truststore=_kafkas_truststore(options),
        client_auth=ClientAuth(options.ssl_client_auth),
        versions=_versions(options),
        rules=options.ssl_principal_mapping_rules,
    )


def _kafkas_truststore(options: TlsOptions) -> Store | None:
    text = options.ssl_truststore_certificates
    if options.ssl_truststore_location:
        _refuse_beside("ssl.truststore.location", text, "ssl.truststore.certificates")
        return Store(
            name="ssl.truststore.location",
            files=(options.ssl_truststore_location,),
            kind=options.ssl_truststore_type,
            password=options.ssl_truststore_password,
        )
    return Store(name="ssl.truststore.certificates", text=text, kind=PEM) if text else None


def _refuse_beside(one: str, other: str, named: str) -> None:
    if other:
        raise ConfigurationError(f"{one} and {named} do not go together: give one of them")


def _versions(options: TlsOptions) -> tuple[ssl.TLSVersion, ...]:
    return tuple(_VERSIONS[each] for each in options.ssl_enabled_protocols.split(","))


def principal_rules(settings: TlsSettings) -> PrincipalRules:
    """Return the rules that make principals of the names in certificates. Raises ConfigurationError."""
    try:
        return PrincipalRules(settings.rules)
    except RuleError as error:
        raise ConfigurationError(f"ssl.principal.mapping.rules: {error}") from error


# --- the context ------------------------------------------------------------------------------------------------------


def server_context(settings: TlsSettings) -> tuple[ssl.SSLContext, frozenset[bytes]]:
    """Return the context of a door with these settings, and the certificates that it trusts. Reads files.

    Raises StoreError.
    """
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = min(settings.versions), max(settings.versions)
    context.options |= ssl.OP_NO_RENEGOTIATION  # older versions of OpenSSL let clients ask for it again and again
    _identify(context, settings)
    trusted: frozenset[bytes] = frozenset()
    if settings.client_auth is not ClientAuth.NONE:
        assert settings.truststore is not None
        trusted = _trust(context, settings.truststore)
        is_required = settings.client_auth is ClientAuth.REQUIRED
        context.verify_mode = ssl.CERT_REQUIRED if is_required else ssl.CERT_OPTIONAL
        # As in Java: whatever the truststore holds is trusted, not only authorities that signed themselves.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context, trusted


def _identify(context: ssl.SSLContext, settings: TlsSettings) -> None:
    store, password = settings.keystore, settings.key_password
    content, kind = store.read()
    option = "ssl.key.password"
    if kind == PKCS12:
        _require_cryptography(store)
        content, password = identity_in_pkcs12(_named(store), content, store.password or None)
        option = ""
    elif store.password:
        raise StoreError(f"{_named(store)} is in PEM, which has no ssl.keystore.password; a key has ssl.key.password")
    load_identity(context, _named(store), content, password or None, option)


def _trust(context: ssl.SSLContext, store: Store) -> frozenset[bytes]:
    content, kind = store.read()
    if kind == PKCS12:
        _require_cryptography(store)
        text = trusted_in_pkcs12(_named(store), content, store.password or None)
    else:
        if store.password:
            raise StoreError(f"{_named(store)} is in PEM, which has no password")
        text = content.decode("ascii", errors="replace")
    load_trusted(context, _named(store), text)
    return certificates_in(text)


def _named(store: Store) -> str:
    return store.name + (f", {' and '.join(store.files)}" if store.files else "")


def _require_cryptography(store: Store) -> None:
    try:
        __import__("cryptography")
    except ImportError as error:
        raise StoreError(f"{_named(store)} is in PKCS #12: install what reads it by {install_extra('tls')}") from error
