"""The broker under test: Exacta, unless EXACTA_TEST_PULSAR names an Apache Pulsar.

The Apache Pulsar must have transactions and `acknowledgmentAtBatchIndexLevelEnabled=true`, and must create topics by
itself. EXACTA_TEST_PULSAR_WEB names its HTTP endpoint, which creates partitioned topics and a namespace with
deduplication (http://127.0.0.1:18080 unless it is set). Topics have names of their own, so that a broker may be used
again and again.
"""

import contextlib
import itertools
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

import exacta

PULSAR_URL = os.environ.get("EXACTA_TEST_PULSAR")
PULSAR_WEB = os.environ.get("EXACTA_TEST_PULSAR_WEB", "http://127.0.0.1:18080")
ON_PULSAR = PULSAR_URL is not None
BUFFERS = ["marker"] if ON_PULSAR else ["marker", "sidecar"]
"""The kinds of topics: Apache Pulsar has one."""
DEDUPLICATING = "public/deduplicating"
"""A namespace in which Apache Pulsar drops repeats. Exacta does so everywhere."""
_RUN = f"{os.getpid()}-{time.time_ns() // 1_000_000 % 100_000_000}"
_numbers = itertools.count()


on_topics_of_both_kinds = pytest.mark.parametrize("given", BUFFERS, indirect=True)


def unique(name: str) -> str:
    """Return a name that nobody has used on this broker."""
    kept = "".join(each if each.isalnum() else "-" for each in name)
    return f"{kept[:60]}-{_RUN}-{next(_numbers)}"


class Given:
    """The broker under test, as the scenarios see it."""

    def __init__(self, url: str, bootstrap: str | None, *, is_sidecar: bool = False) -> None:
        """Remember where clients connect; `bootstrap` is where those of Kafka do, if it is Exacta."""
        self.url = url
        self.bootstrap = bootstrap
        self.is_sidecar = is_sidecar
        """True: its topics are sidecar topics."""

    def create_partitioned(self, topic: str, partitions: int) -> None:
        """Create a topic of this many partitions in the default namespace."""
        if self.bootstrap is None:
            _ask("PUT", f"/admin/v2/persistent/public/default/{topic}/partitions", partitions)
            return
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        [created] = admin.create_topics([NewTopic(topic, partitions, 1)]).values()
        created.result(20)

    def delete(self, topic: str) -> None:
        """Delete a topic of Exacta with all of its partitions, also while it is used."""
        assert self.bootstrap is not None
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        [deleted] = admin.delete_topics([topic]).values()
        deleted.result(20)

    def deduplicating(self, topic: str) -> str:
        """Return the name of a topic where repeats are dropped."""
        if self.bootstrap is None:
            with contextlib.suppress(FileExistsError):
                _ask("PUT", f"/admin/v2/namespaces/{DEDUPLICATING}", {})
            _ask("POST", f"/admin/v2/namespaces/{DEDUPLICATING}/deduplication", True)
        return f"persistent://{DEDUPLICATING}/{topic}"


def _ask(method: str, path: str, body: object) -> None:
    data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(PULSAR_WEB + path, data, headers, method=method)
    try:
        urllib.request.urlopen(request, timeout=20).close()
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 409:
                raise FileExistsError(path) from None
            raise RuntimeError(f"{method} {path}: {error.code} {error.read()!r}") from None


@contextlib.contextmanager
def broker_under_test(**options: Any) -> Iterator[Given]:
    """Run Exacta with these options, or find the Apache Pulsar that the environment names."""
    if PULSAR_URL is not None:
        yield Given(PULSAR_URL, None)
        return
    with exacta.Broker(pulsar=True, **options) as broker:
        is_sidecar = options.get("transaction_buffer") == "sidecar"
        yield Given(broker.pulsar_url, broker.bootstrap_servers, is_sidecar=is_sidecar)
