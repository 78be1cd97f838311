"""Wait until records arrive, by fetches at the end of partitions that are kept in flight at their leaders.

This module owns one connection per leader with at most one fetch on it. The answer to a fetch is thrown away; it only
says that there is something.
"""

import select
import time

from exacta.client.connection import Connection
from exacta.client.fetcher import fetch_request, send_fetch
from exacta.client.routing import Client, Leader
from exacta.client.transactions import TopicPartition


class Bell:
    """Waits for new records at the leaders of some partitions."""

    def __init__(self, client: Client, isolation_level: int, wait_ms: int) -> None:
        self._client = client
        self._isolation_level = isolation_level
        self._wait_ms = wait_ms
        self._connections: dict[int, Connection] = {}
        self._positions: dict[TopicPartition, int] = {}

    def wait(self, positions: dict[TopicPartition, int]) -> bool:
        """Wait until a partition has a record at its position, or time is over; return whether one may have it.

        Raises what the client raises.
        """
        if positions != self._positions:
            # A fetch in flight waits at other offsets; its connection goes with it.
            self.close()
            self._positions = dict(positions)
        deadline = self._client.deadline(self._wait_ms + 5_000)
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for partition, position in positions.items():
            leader = self._client.resolve(Leader(*partition), deadline)
            assert leader is not None
            by_leader.setdefault(leader, {})[partition] = position
        for leader, part in by_leader.items():
            connection = self._connections.get(leader)
            if connection is None or connection.closed:
                connection = self._connections[leader] = self._client.lease(leader, deadline)
            if not connection.in_flight:
                request = fetch_request(
                    part, isolation_level=self._isolation_level, max_wait_ms=self._wait_ms, max_bytes=1
                )
                send_fetch(connection, request, deadline)
        began_s = time.monotonic()
        # A broker answers after its wait, and a little later than that.
        ready, _, _ = select.select(list(self._connections.values()), [], [], 2 * self._wait_ms / 1000)
        for connection in ready:
            connection.receive(deadline)
        return not ready or time.monotonic() - began_s < self._wait_ms / 1000

    def close(self) -> None:
        """Close the connections, and with them what is in flight."""
        for leader, connection in self._connections.items():
            self._client.release(leader, connection)
        self._connections.clear()
        self._positions = {}
