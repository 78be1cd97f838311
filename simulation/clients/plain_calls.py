"""Calls into the broker's engine without a wire protocol, as a front makes them that the simulation does not have.

Owns the faults of the way there and back. A call may be lost before the engine gets it, or its answer on the way back;
and a client that calls a broker that is down, or that dies meanwhile, hears nothing.
"""

import asyncio
import itertools
import random
from collections.abc import Callable
from typing import Any

from exacta.core.commands import Command
from exacta.core.ids import ConsumerId, Offset
from exacta.core.rejections import Rejection
from exacta.engine.entry_sinks import Sent
from simulation.broker import Broker, facts_of
from simulation.clients.connection import Disconnected

WAY_SECONDS = (0.0001, 0.004)
LOST_SHARE = 0.02
LATER = (Rejection.DISK_FULL, Rejection.RESERVE_USED_UP)
"""The answers after which a client asks once more: for ours they are as good as none."""
PATIENCE_SECONDS = 8.0


class PlainCalls:
    """One client's way to the engine."""

    def __init__(self, loop: asyncio.AbstractEventLoop, broker: Broker, chance: random.Random) -> None:
        self._loop = loop
        self._broker = broker
        self._chance = chance

    async def ask(self, command: Command, payload: bytes | None = None) -> Any:
        """Submit a command, and return the answer; raise Disconnected."""
        chance = self._chance
        await asyncio.sleep(chance.uniform(*WAY_SECONDS))
        life = self._broker.life
        if life is None or not life.process.alive or not life.takes_requests or chance.random() < LOST_SHARE:
            raise Disconnected
        answered: asyncio.Future[Any] = self._loop.create_future()

        def done(answers: list[Any]) -> None:
            if not answered.done():
                answered.set_result(answers[0])

        life.process.run(lambda: life.engine.submit((command,), done, [payload]))
        try:
            answer = await asyncio.wait_for(answered, PATIENCE_SECONDS)
        except TimeoutError:
            raise Disconnected from None
        await asyncio.sleep(chance.uniform(*WAY_SECONDS))
        if chance.random() < LOST_SHARE or answer in LATER:
            raise Disconnected
        return answer

    def receive(self, consumer_id: ConsumerId, deliver: Callable[[list[Sent], list[Offset]], None]) -> bool:
        """Let what is pushed to a consumer come here, after its way; return whether there is a broker to push it.

        `deliver` also gets the names of the entries whose time has not come yet.
        """
        life = self._broker.life
        if life is None or not life.process.alive or not life.takes_requests:
            return False

        def push(sent: list[Sent]) -> None:
            copied = [Sent(each.entry, bytes(each.batch)) for each in sent]
            now_ms = life.engine.now_ms()
            early = [each.entry.base for each in copied if facts_of(each.batch)[1] > now_ms]
            self._loop.call_later(self._chance.uniform(*WAY_SECONDS), deliver, copied, early)

        life.process.run(lambda: life.engine.dispatcher.register(consumer_id, push, life.pulsar.form))
        return True

    async def until_answered(self, command: Command) -> Any:
        """Ask until an answer comes."""
        return (await self.answer_and_tries(command))[0]

    async def answer_and_tries(self, command: Command) -> tuple[Any, int]:
        """Ask until an answer comes; return how often it was asked for, too."""
        for tries in itertools.count(1):
            try:
                return await self.ask(command), tries
            except Disconnected:
                await asyncio.sleep(self._chance.uniform(0.02, 0.4))
        raise AssertionError
