"""kafka-python's fixture of a broker, with Exacta in place of Apache Kafka; loaded by pytest in kafka-python's folder.

`EXACTA_ADDRESSES` has the port of each door, `EXACTA_AUTHORITY` the file with the certificate's authority.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

from kafka import KafkaAdminClient
from test.integration import fixtures

PORTS = json.loads(os.environ["EXACTA_ADDRESSES"])


class ExactaFixture(fixtures.KafkaFixture):
    """A door of the one broker, as the fixture of a broker."""

    kafka_root = "/"

    @classmethod
    def instance(cls, broker_id, transport="PLAINTEXT", **params):
        params.pop("tmp_dir", None)
        fixture = cls("localhost", PORTS[transport.upper()], broker_id, transport=transport, **params)
        fixture.open()
        return fixture

    def open(self):
        self.child = SimpleNamespace(dump_logs=lambda: None)
        if self.ssl_enabled:
            self.ssl_dir = tempfile.mkdtemp()
            shutil.copy(os.environ["EXACTA_AUTHORITY"], Path(self.ssl_dir) / "ca-cert")
        self.running = True

    def start(self):
        pass

    def stop(self):
        self.running = False

    def close(self):
        pass

    def get_topic_names(self):
        with KafkaAdminClient(**self._enrich_client_params({})) as admin:
            return admin.list_topics()


fixtures.KafkaFixture = ExactaFixture
