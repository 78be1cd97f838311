"""Keep the clients of this process from batch to batch, one per cluster.

Spark's Python workers serve many batches, one at a time, and are forked from a daemon: a client is never shared across
a fork, nor by two threads. A cluster that is reached as another user counts as another cluster.
"""

import gc
import os
import threading

from exacta.client.routing import Client
from exacta.client.security import Cluster
from exacta.spark.error_sentences import in_worker

_clients: dict[tuple[int, int, Cluster], Client] = {}
_settled: set[int] = set()


def client_of(cluster: Cluster, *, call_timeout_ms: float = 120_000) -> Client:
    """Return this process's and thread's client of a cluster; a call of it tries for `call_timeout_ms`."""
    key = (os.getpid(), threading.get_ident(), cluster)
    client = _clients.get(key)
    if client is None:
        client = _clients[key] = Client(cluster)
    elif key[0] not in _settled:
        _settled.add(key[0])
        if in_worker():
            _settle_heap()
    client.call_timeout_ms = call_timeout_ms
    return client


def _settle_heap() -> None:
    """Take what is alive in this worker, imported modules mostly, out of the garbage collector's sight.

    Spark's daemon has a worker collect garbage after every task, and looking through pandas and pyarrow again each time
    takes some 40 ms of processor time: several times what a small task does. It is done when a client is asked for
    again: by then all that a task needs is imported.
    """
    gc.collect()
    gc.freeze()
