"""An Exacta with a listener for each security protocol, users and access rules: what a secured Apache Kafka is, too.

Certificates, accounts and most properties are those of `python -m benchmarks.kafka --secure`. The users of Exacta lie
in its log, so they are made by a client. It can be killed, and started again.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.kafka.security import MECHANISMS, REAUTHENTICATION_MS, Secured

from exacta.client.access_rules import AccessRule, add_rules
from exacta.client.routing import Client
from exacta.client.users import set_password
from tests.client.secured import Access
from tests.conformance.brokers import BROKER_SETTINGS, HOST, BrokerProcess, free_port

LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SETTINGS = (
    "node.id=1",
    # Kafka says these for one listener alone, and has users of PLAIN in its configuration.
    f"sasl.enabled.mechanisms={','.join(MECHANISMS)}",
    f"connections.max.reauth.ms={REAUTHENTICATION_MS}",
    "connection.failed.authentication.delay.ms=1",
    *BROKER_SETTINGS,
)


class SecuredExacta(BrokerProcess):
    """The broker, in a process of its own; whatever comes in by its plain listener may do everything."""

    def __init__(self, folder: Path, secured: Secured) -> None:
        ports = {name: free_port() for name in LISTENERS}
        self.access = Access(
            listeners={name: f"{HOST}:{port}" for name, port in ports.items()},
            accounts=dict(secured.accounts),
            ca=str(secured.folder / "ca.pem"),
            client=str(secured.folder / "client.pem"),
        )
        listeners = ",".join(f"{name}://{at}" for name, at in self.access.listeners.items())
        kafkas = [line for line in secured.properties() if not line.startswith("listener.name.sasl")]
        file = folder / "server.properties"
        file.write_text("\n".join((f"listeners={listeners}", *kafkas, *SETTINGS)) + "\n")
        command = [sys.executable, "-m", "exacta.cli", "serve", "--data", str(folder / "data"), "--config", str(file)]
        super().__init__(command, ports["PLAINTEXT"], folder / "log")

    def allow(self, rules: Iterable[AccessRule]) -> None:
        """Make access rules."""
        with Client(self.bootstrap) as client:
            add_rules(client, rules)

    def make_users(self, *names: str) -> None:
        """Let these users log in by every mechanism."""
        with Client(self.bootstrap) as client:
            for name in names:
                for mechanism in MECHANISMS[1:]:  # PLAIN goes by the same keys
                    set_password(client, name, self.access.accounts[name], mechanism)


@contextmanager
def secured_exacta(folder: Path, *, secrets: Path | None = None) -> Iterator[SecuredExacta]:
    """Run it on empty data in `folder`, with the accounts of the secured Apache Kafka."""
    folder.mkdir(parents=True, exist_ok=True)
    broker = SecuredExacta(folder, Secured.at(secrets or folder / "secrets", HOST))
    broker.start()
    try:
        broker.make_users(*broker.access.accounts)
        yield broker
    finally:
        broker.stop()
