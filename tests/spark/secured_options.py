"""The options by which source and sink reach a secured cluster."""

from typing import Any

from tests.client.secured import Access

MODULES = {"PLAIN": "plain.PlainLoginModule"}


def options_of(
    access: Access, protocol: str, mechanism: str = "SCRAM-SHA-512", user: str = "exacta", password: str | None = None
) -> dict[str, Any]:
    """Return the options of reader and writer, but for the address."""
    module = MODULES.get(mechanism, "scram.ScramLoginModule")
    login = f'username="{user}" password="{password or access.accounts[user]}";'
    sasl = {
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": f"org.apache.kafka.common.security.{module} required {login}",
    }
    return {
        "kafka.security.protocol": protocol,
        **(sasl if protocol.startswith("SASL") else {}),
        **({"kafka.ssl.truststore.location": access.ca} if protocol.endswith("SSL") else {}),
        **({"kafka.ssl.keystore.location": access.client} if protocol == "SSL" else {}),
    }
