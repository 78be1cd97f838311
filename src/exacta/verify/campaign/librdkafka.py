"""Translate how a cluster is reached into librdkafka's settings, so that both clients reach the same cluster.

Trusted certificates are handed over as PEM text, read by `client/`, so that every store serves which serves there. A
keystore goes over as it is: librdkafka reads PEM and PKCS #12.
"""

from exacta.client.security import Cluster, KeyStore, Tls
from exacta.client.tls_stores import is_pkcs12, trusted


def settings_of(cluster: Cluster) -> dict[str, str]:
    """Return the settings of a cluster; raises `TlsFailed` where a store cannot be read."""
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
        settings["ssl.ca.pem"] = trusted(tls.truststore)[1]
    if tls.keystore is not None:
        settings |= _identity(tls.keystore)
    return settings


def _identity(store: KeyStore) -> dict[str, str]:
    password = {} if store.key_password is None else {"ssl.key.password": store.key_password}
    if store.location is None:
        assert store.key is not None
        assert store.certificate_chain is not None
        return {"ssl.key.pem": store.key, "ssl.certificate.pem": store.certificate_chain, **password}
    if is_pkcs12(store):
        return {"ssl.keystore.location": store.location, "ssl.keystore.password": store.password or ""}
    return {"ssl.key.location": store.location, "ssl.certificate.location": store.location, **password}
