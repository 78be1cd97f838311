"""A connection of Kafka's clients that meets the faults which a test has armed.

Theory of operation. A request meets a fault when it has been read and before its handler sees it; an answer when it is
made and before it takes its place in the order of answers. From the moment when a request or an answer is lost, nothing
more is carried out and nothing more leaves on this connection; it is closed when the fault's action has run. So the
client is left in the doubt of a crash at this moment. An answer that is delayed keeps its place, so that the later ones
wait behind it.

The test kit's own requests meet no fault.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

from exacta.kafka.connection import KafkaClientConnection
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler
from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k01_fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from exacta.protocol.kafka.schema import Buffer, Message
from exacta.testing.faults import Armed, Effect, Fault, Place
from exacta.testing.questions import CLIENT_ID


def refusable() -> Sequence[str]:
    """Return the names of the APIs that an error code can answer."""
    return [handler.name for handler in HANDLERS.values() if handler.can_refuse or handler.key is ApiKey.FETCH]


class FaultyConnection(KafkaClientConnection):
    """A `KafkaClientConnection` with the faults of a broker."""

    def __init__(self, armed: Armed, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._armed = armed
        self._is_lost = False
        self._is_refusing = False

    def serve(self, handler: Handler, request: Message, context: RequestContext) -> None:
        """See `KafkaClientConnection.serve`."""
        if self._is_lost:
            context.response = []  # no handler works on it
            return
        fault = self._met(Place.REQUEST, context)
        if fault is None:
            super().serve(handler, request, context)
        elif fault.effect is Effect.CUT:
            context.response = []
            self._lose(fault)
        else:
            self._refuse(fault, handler, request, context)

    def answered(self, context: RequestContext, response: list[Buffer]) -> None:
        """See `KafkaClientConnection.answered`."""
        if self._closing or self._is_refusing:
            super().answered(context, response)
            return
        if self._is_lost:
            return
        fault = self._met(Place.ANSWER, context)
        if fault is None:
            super().answered(context, response)
        elif fault.effect is Effect.DROP:
            self._lose(fault)
        else:
            context.response = None  # as if the handler was still at work
            self._loop.call_later(fault.seconds, self._answer_later, fault, context, response)

    def _met(self, place: Place, context: RequestContext) -> Fault | None:
        if not self._armed or context.client_id == CLIENT_ID:
            return None
        return self._armed.meet(place, context.handler.name)

    def _answer_later(self, fault: Fault, context: RequestContext, response: list[Buffer]) -> None:
        context.response = response
        self._armed.act(fault)  # before the client goes on: its test may look at once
        super().answered(context, response)

    def _lose(self, fault: Fault) -> None:
        self._is_lost = True
        self.stop_taking_requests()
        self._armed.act(fault, self._close_from_any_thread)

    def _close_from_any_thread(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended with the broker
            self._loop.call_soon_threadsafe(self.close)

    def _refuse(self, fault: Fault, handler: Handler, request: Message, context: RequestContext) -> None:
        code = ErrorCode(fault.error_code)
        if isinstance(request, FetchRequest):
            answer: Message | None = _refused_fetch(request, code)
        else:
            answer = handler.refusal_of_all(request, code, context.version)
        self._armed.act(fault)  # as in `_answer_later`
        self._is_refusing = True
        try:
            context.reply(answer)
        finally:
            self._is_refusing = False


def _refused_fetch(request: FetchRequest, code: ErrorCode) -> FetchResponse:
    """Refuse each partition; all at once in a session, whose requests name only what has changed (KIP-227)."""
    if request.session_id:
        return FetchResponse(error_code=code)
    topics = [
        FetchableTopicResponse(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=[
                PartitionData(partition_index=each.partition, error_code=code, high_watermark=-1)
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return FetchResponse(responses=topics)
