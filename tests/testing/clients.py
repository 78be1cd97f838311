"""The settings that the tests of the kit give their clients."""

import exacta

CALL_S = 30


def servers(broker: exacta.Broker) -> dict[str, object]:
    # Librdkafka forgets a broker otherwise that it cannot reach for a moment.
    return {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, "metadata.recovery.strategy": "none"}
