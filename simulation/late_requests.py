"""Requests that arrive once more, or late, on another connection.

Owns which may. Of version 2 all: a pair names one transaction, so that what is late finds itself fenced (KIP-890). Of
version 1 only those that the protocol itself makes harmless: a late EndTxn or TxnOffsetCommit of version 1 takes part
in the next transaction of the same pair, in every broker, which is why there is a version 2. And what is late of
version 1 dies with the broker's life in whose buffers it lies (`extension_for_write` in the core builds on that); nor
does it come before what its client had sent earlier, since a producer without state may begin anywhere (KAFKA-14920).
"""

import random
from collections.abc import Callable

from exacta.protocol.kafka.schema import Message
from simulation.broker import Broker
from simulation.loop import SimulatedLoop
from simulation.network import Link, Network, Refused
from simulation.trace import Trace

PRODUCE, INIT, ADD_PARTITIONS, ADD_OFFSETS, END, OFFSETS = 0, 22, 24, 25, 26, 28
SECOND_VERSION_SINCE = {PRODUCE: 12, END: 5, OFFSETS: 5}
HARMLESS = frozenset({PRODUCE, INIT, ADD_PARTITIONS, ADD_OFFSETS})
SECONDS = (0.0005, 20.0)


class Late:
    """The network's memory. `share` of the requests that may arrive again do so."""

    def __init__(
        self, loop: SimulatedLoop, trace: Trace, chance: random.Random, network: Network, broker: Broker
    ) -> None:
        self.share = 0.0
        self._loop = loop
        self._trace = trace
        self._chance = chance
        self._network = network
        self._broker = broker

    def hook(self, host: str) -> Callable[[Link, bytes, Message, int], None]:
        """Return what a client's connection tells of each frame."""
        return lambda link, frame, request, version: self._sent(host, link, frame, request.SCHEMA.key, version)

    def _sent(self, host: str, link: Link, frame: bytes, key: int, version: int) -> None:
        second = version >= SECOND_VERSION_SINCE.get(key, 1 << 15)
        if not self.share or not (second or key in HARMLESS) or self._chance.random() >= self.share:
            return
        # Short delays meet the retry, long ones the next transaction.
        seconds = self._chance.uniform(*SECONDS) ** 2 / SECONDS[1]
        if not second:
            seconds = max(seconds, link.arrives_in())
        self._loop.call_later(seconds, self._again, host, link, frame, key, second, self._broker.lives)

    def _again(self, host: str, original: Link, frame: bytes, key: int, second: bool, life: int) -> None:
        if not self.share or (not second and (original.lost or life != self._broker.lives)):
            return
        try:
            link = self._network.connect(host, lambda data: None, lambda: None)
        except Refused:
            return
        self._trace.fault("late or repeated request", key, link.number)
        link.send(frame)
        self._loop.call_later(5.0, link.close)
