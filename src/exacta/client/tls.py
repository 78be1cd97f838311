"""TLS over a connected socket, and what a failed handshake means in one sentence.

This module owns the SSL context and the reading of OpenSSL's errors. An error that trying again cannot mend raises
`TlsFailed`; a peer that went away meanwhile is an `OSError` like any other.

Theory of operation: a handshake fails for three kinds of reasons. We refuse the broker's certificate: OpenSSL says
why. The broker refuses us: it sends an alert, in TLS 1.3 only after our side of the handshake has ended, so that it
may come with the first reply. Or the port does not speak TLS at all: it hangs up, and `diagnosis.py` asks it why.
"""

import os
import socket
import ssl
from functools import lru_cache

from exacta.client import tls_stores
from exacta.client.errors import TlsFailed
from exacta.client.security import Tls

# What X509_verify_cert returns (OpenSSL, x509_vfy.h).
_EXPIRED, _NOT_YET_VALID = 10, 9
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
_WRONG_NAME = frozenset({62, 64})

_ABOUT_OUR_CERTIFICATE = frozenset(
    {
        "BAD_CERTIFICATE",
        "CERTIFICATE_UNKNOWN",
        "CERTIFICATE_EXPIRED",
        "CERTIFICATE_REVOKED",
        "UNSUPPORTED_CERTIFICATE",
        "CERTIFICATE_REQUIRED",
        "UNKNOWN_CA",
        "ACCESS_DENIED",
    }
)
_PASSING_ALERTS = frozenset({"INTERNAL_ERROR", "USER_CANCELLED", "NO_RENEGOTIATION"})
"""Alerts of a broker that is going away or in trouble, not at odds with us."""


def wrap(plain: socket.socket, tls: Tls, host: str, port: int) -> ssl.SSLSocket:
    """Return `plain` with TLS on it, the handshake done; raises `TlsFailed` and `OSError`."""
    context = _context(tls, _stamps(tls))
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except ssl.SSLError as error:
        refusal = explain(error, tls, f"{host}:{port}")
        raise (refusal or error) from error


def explain(error: OSError, tls: Tls | None, address: str) -> TlsFailed | None:
    """Return what `error` means where trying again cannot mend it, else None."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsFailed(_certificate_sentence(error, address))
    gone = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
    if not isinstance(error, ssl.SSLError) or isinstance(error, gone):
        return None
    reason = error.reason or ""
    if any(alert in reason for alert in _PASSING_ALERTS):
        return None
    if "ALERT" in reason and any(alert in reason for alert in _ABOUT_OUR_CERTIFICATE):
        if tls is None or tls.keystore is None:
            return TlsFailed(
                f"{address} asks for a client certificate: set option 'kafka.ssl.keystore.location', or use a port "
                f"that does not ask ({reason})"
            )
        return TlsFailed(f"{address} refused the certificate in 'kafka.ssl.keystore' ({reason})")
    if "WRONG_VERSION_NUMBER" in reason or "RECORD_LAYER_FAILURE" in reason or "PACKET_LENGTH" in reason:
        return TlsFailed(
            f"{address} does not speak TLS: option 'kafka.security.protocol' should be PLAINTEXT or SASL_PLAINTEXT, or "
            "the port another"
        )
    return TlsFailed(f"{address} and we do not agree on TLS: {reason or error}")


def _certificate_sentence(error: ssl.SSLCertVerificationError, address: str) -> str:
    if error.verify_code in _WRONG_NAME:
        return (
            f"the certificate of {address} is for another host ({error.verify_message}): use the name that it is for, "
            "or an empty option 'kafka.ssl.endpoint.identification.algorithm'"
        )
    if error.verify_code in _UNKNOWN_AUTHORITY:
        return (
            f"the certificate of {address} is of an authority that is not trusted ({error.verify_message}): set option "
            "'kafka.ssl.truststore.location' or 'kafka.ssl.truststore.certificates'"
        )
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        return f"the certificate of {address} is not valid at this time ({error.verify_message})"
    return f"the certificate of {address} is not trusted ({error.verify_message})"


@lru_cache(maxsize=16)
def _context(tls: Tls, stamps: tuple[int, ...]) -> ssl.SSLContext:
    """Return the context of `tls`; `stamps` are in the key so that files which were renewed are read again."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.verify_host_name
    # As in Java: whatever the truststore holds is trusted, not only authorities that signed themselves.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    tls_stores.trust(context, tls.truststore)
    if tls.keystore is not None:
        tls_stores.identify(context, tls.keystore)
    return context


def _stamps(tls: Tls) -> tuple[int, ...]:
    locations = [store.location for store in (tls.truststore, tls.keystore) if store is not None]
    return tuple(_modified_ns(location) for location in locations if location is not None)


def _modified_ns(location: str) -> int:
    try:
        return os.stat(location).st_mtime_ns
    except OSError:
        return 0  # its reader says what is wrong
