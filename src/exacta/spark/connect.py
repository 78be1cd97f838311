"""The clients of this process: one per cluster, kept from batch to batch.

Spark's Python workers serve many batches, one at a time, and are forked from a daemon: a client is never shared
across a fork, nor by two threads. A cluster reached as somebody else is another one.
"""

from __future__ import annotations

import os
import threading

from exacta.client.routing import Client
from exacta.client.security import Cluster

_clients: dict[tuple[int, int, Cluster], Client] = {}


def client_of(cluster: Cluster, *, call_timeout_ms: float = 120_000) -> Client:
    """Return this process's and thread's client of a cluster; a call of it tries for `call_timeout_ms`."""
    key = (os.getpid(), threading.get_ident(), cluster)
    client = _clients.get(key)
    if client is None:
        client = _clients[key] = Client(cluster)
    client.call_timeout_ms = call_timeout_ms
    return client
