"""A broker as every front sees it, over a journal in memory, and requests of no protocol."""

import uuid
from typing import Any

from exacta.adapters.memory import MemoryJournal, MemoryStorage
from exacta.config.options import configure
from exacta.engine.engine import Engine
from exacta.front.broker import Broker
from exacta.front.memory import Memory
from exacta.front.request import Request
from exacta.ports.authorizer import ANONYMOUS, AllowAll, Principal
from exacta.ports.log import FetchRequest
from exacta.records.record_format import KafkaRecordFormat
from tests.engine.rig import ManualLoop


class CountedEntropy:
    """Draws that a test foresees: 1, 2, 3, …"""

    def __init__(self) -> None:
        self.draws = 0

    def new_uuid(self) -> uuid.UUID:
        self.draws += 1
        return uuid.UUID(int=self.draws)

    def below(self, bound: int) -> int:
        self.draws += 1
        return self.draws % bound


class NoConnection:
    """The connection of a request, which notes how it ended."""

    def __init__(self) -> None:
        self.peer = "10.0.0.1:1"
        self.peer_host = "10.0.0.1"
        self.local_host = "10.0.0.2"
        self.principal: Principal = ANONYMOUS
        self.rests_on = 0
        self.refused: list[str] = []
        self.aborted = False

    def refuse(self, reason: str) -> None:
        self.refused.append(reason)

    def abort(self) -> None:
        self.aborted = True


class PlainRequest(Request):
    """A request that notes its failures and its fetches."""

    def __init__(self, connection: NoConnection) -> None:
        super().__init__(connection)
        self.failures = 0
        self.fetches: list[FetchRequest] = []

    def fail(self) -> None:
        self.failures += 1

    def reads(self, request: FetchRequest) -> None:
        self.fetches.append(request)


class Rig:
    """One broker and one request; `answered` runs the loop until the engine has nothing to do."""

    def __init__(self, **options: Any) -> None:
        self.loop = ManualLoop()
        self.entropy = CountedEntropy()
        configuration = configure(options)
        self.engine = Engine(
            MemoryJournal(MemoryStorage(), self.loop.call_soon),
            KafkaRecordFormat(),
            scheduler=self.loop,
            clock=lambda: self.loop.now_ms,
            limits=configuration.limits(),
            on_failure=lambda failure: None,
        )
        self.broker = Broker(
            self.engine,
            configuration,
            self.entropy,
            Memory(configuration, self.loop),
            AllowAll(),
            cluster_id="c",
        )
        self.connection = NoConnection()
        self.request = PlainRequest(self.connection)
