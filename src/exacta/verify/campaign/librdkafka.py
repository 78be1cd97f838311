"""How a cluster is reached, said in librdkafka's settings: the same cluster as the one that `client/` reaches.

Stores are handed over as files in PEM or PKCS #12, or as PEM text; whatever else a truststore can be is refused by
`client/` before this is asked for.
"""

from __future__ import annotations

from pathlib import Path

from exacta.client.security import PKCS12, Cluster, KeyStore, Tls, TrustStore


class Unsupported(Exception):
    """librdkafka cannot be told so; the message is one line."""


def settings_of(cluster: Cluster) -> dict[str, str]:
    """Return the settings of a cluster; raises `Unsupported`."""
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "client.id": cluster.client_id,
        "security.protocol": cluster.security.protocol,
    }
    if cluster.security.sasl is not None:
        sasl = cluster.security.sasl
        settings |= {"sasl.mechanism": sasl.mechanism, "sasl.username": sasl.username, "sasl.password": sasl.password}
    if cluster.security.tls is not None:
        settings |= _tls(cluster.security.tls)
    return settings


def _tls(tls: Tls) -> dict[str, str]:
    settings = {"ssl.endpoint.identification.algorithm": "https" if tls.verify_host_name else "none"}
    if tls.truststore is not None:
        settings |= _trust(tls.truststore)
    if tls.keystore is not None:
        settings |= _identity(tls.keystore)
    return settings


def _trust(store: TrustStore) -> dict[str, str]:
    if store.certificates is not None:
        return {"ssl.ca.pem": store.certificates}
    assert store.location is not None
    if _is_pkcs12(store.location, store.kind):
        raise Unsupported(f"the truststore {store.location} must be in PEM: librdkafka reads no other")
    return {"ssl.ca.location": store.location}


def _identity(store: KeyStore) -> dict[str, str]:
    password = {} if store.key_password is None else {"ssl.key.password": store.key_password}
    if store.location is None:
        assert store.key is not None
        assert store.certificate_chain is not None
        return {"ssl.key.pem": store.key, "ssl.certificate.pem": store.certificate_chain, **password}
    if _is_pkcs12(store.location, store.kind):
        return {"ssl.keystore.location": store.location, "ssl.keystore.password": store.password or ""}
    return {"ssl.key.location": store.location, "ssl.certificate.location": store.location, **password}


def _is_pkcs12(location: str, kind: str | None) -> bool:
    return kind == PKCS12 or (kind is None and b"-----BEGIN" not in Path(location).read_bytes())
