"""What the tests of doors with TLS share: a client's options, a bare client, the log's lines, who is connected."""

import socket
import ssl
from typing import Any

import pytest

import exacta
from exacta.ports.authorizer import Principal
from tests.waiting import wait_until

ANSWER_SECONDS = 20
API_VERSIONS = b"\0\0\0\x0a\0\x12\0\0\0\0\0\x07\xff\xff"


def port_of(broker: exacta.Broker) -> int:
    return int(broker.bootstrap_servers.rpartition(":")[2])


def told(caplog: pytest.LogCaptureFixture, words: str) -> str:
    """Wait for a line of the log with these words: the client may see its end before the operator does."""
    wait_until(lambda: any(words in message for message in caplog.messages), ANSWER_SECONDS, words)
    return next(message for message in caplog.messages if words in message)


def is_answered(port: int, context: ssl.SSLContext) -> bool:
    """Return whether a client that speaks TLS gets an answer; else the connection ends, or TLS says why not."""
    with socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="localhost") as secured:
                secured.sendall(API_VERSIONS)
                return secured.recv(8)[4:8] == b"\0\0\0\x07"
        except ssl.SSLCertVerificationError:
            raise
        except OSError:
            return False


def at(broker: exacta.Broker, **more: Any) -> dict[str, Any]:
    """Return the options of librdkafka."""
    options = {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SSL",
        "ssl.ca.location": broker.tls_ca,
    }
    return options | {name.replace("_", "."): value for name, value in more.items()}


def principals(broker: exacta.Broker) -> set[Principal]:
    assert broker._server is not None
    return {each.principal for each in broker._server._connections}
