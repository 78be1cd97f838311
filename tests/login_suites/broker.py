"""The broker of the suites: four doors, a certificate, and users who log in by every mechanism with a password."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import trustme
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from msgspec import Struct

from exacta.config.security import STANDARD_AUTHORIZER
from tests.conformance.brokers import HOST, free_port

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
START_SECONDS = 30
EXIT_SECONDS = 30


class SecuredBroker(Struct, frozen=True):
    """A broker that runs: the port of each door, and the file with the authority that its certificate is of."""

    ports: Mapping[str, int]
    authority: Path

    def address(self, protocol: str, host: str = HOST) -> str:
        """Return the address of a door."""
        return f"{host}:{self.ports[protocol]}"

    def add_user(self, name: str, password: str) -> None:
        """Add a user, for every mechanism."""
        admin = AdminClient({"bootstrap.servers": self.address("PLAINTEXT")})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            upsertion = UserScramCredentialUpsertion(name, info, password.encode())
            for done in admin.alter_user_scram_credentials([upsertion]).values():
                done.result(START_SECONDS)


@contextlib.contextmanager
def secured_broker(folder: Path, options: Mapping[str, str], host: str = HOST) -> Iterator[SecuredBroker]:
    """Run a broker whose clients are told that it is at `host`."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    ports = {protocol: free_port() for protocol in PROTOCOLS}
    settings = {
        "listeners": ",".join(f"{protocol}://{HOST}:{port}" for protocol, port in ports.items()),
        "advertised.listeners": ",".join(f"{protocol}://{host}:{port}" for protocol, port in ports.items()),
        "ssl.keystore.location": str(folder / "server.pem"),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
        "group.initial.rebalance.delay.ms": "0",
        **options,
    }
    configuration = folder / "server.properties"
    configuration.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command = [sys.executable, "-m", "exacta.cli", "serve", "--data", str(folder / "data")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--config", str(configuration)], stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert process.stdout is not None
    try:
        assert process.stdout.readline(), (folder / "log").read_text()
        yield SecuredBroker(ports, folder / "authority.pem")
    finally:
        process.terminate()
        process.communicate(timeout=EXIT_SECONDS)
    assert process.returncode == 0
    assert " ERROR " not in (folder / "log").read_text()
