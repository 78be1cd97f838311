"""confluent-kafka-python's fixture of a cluster whose clients log in, with Exacta; loaded by pytest in its folder.

`EXACTA_SECURED` is the address of the door that asks for a login. `BROKERS` is the client's own way to name a cluster.
"""

import os

import pytest
from stand_ins import stand_in

stand_in("trivup", "confluent_kafka.schema_registry", "confluent_kafka.avro")


@pytest.hookimpl(tryfirst=True)
def pytest_plugin_registered(plugin):
    """Replace what the client's conftest starts a cluster with."""
    if hasattr(plugin, "create_sasl_cluster"):
        plugin.create_sasl_cluster = lambda conf: plugin.create_byo_cluster(
            {
                "bootstrap.servers": os.environ["EXACTA_SECURED"],
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "sasl_user",
                "sasl.password": "sasl_user",
            }
        )
