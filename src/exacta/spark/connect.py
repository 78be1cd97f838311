"""The clients of this process: one per cluster, kept from batch to batch.

Spark's Python workers serve many batches, one at a time, and are forked from a daemon: a client is never shared
across a fork, nor by two threads.
"""

from __future__ import annotations

import os
import threading

from exacta.client.routing import Client

_clients: dict[tuple[int, int, str], Client] = {}


def client_of(bootstrap: str, *, call_timeout_ms: float = 120_000) -> Client:
    """Return this process's and thread's client of a cluster; a call of it tries for `call_timeout_ms`."""
    key = (os.getpid(), threading.get_ident(), bootstrap)
    client = _clients.get(key)
    if client is None:
        client = _clients[key] = Client(bootstrap)
    client.call_timeout_ms = call_timeout_ms
    return client
