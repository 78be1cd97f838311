"""The reasons why a partition of a Fetch is not read: replicas, leader epochs (KIP-320), a follower that is behind.

A follower knows a prefix of the log. What it says of the log's end, a consumer would take for the truth: that its
offset is out of range, or that the log has another past than it has read. So it catches up with the leader before it
speaks of an offset beyond its end. If that is still beyond, it says OFFSET_NOT_AVAILABLE (KIP-392), after which
consumers ask the leader, or ask again.
"""

from collections.abc import Iterable

from exacta.core.values.leader_epochs import FIRST_EPOCH, end_of, last_epoch
from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.kafka.fetch_sessions import Asked
from exacta.kafka.leader_epoch import UNSAID, leader_epoch_error
from exacta.ports.log import FetchPartition as Wanted
from exacta.ports.log import Visible
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k01_fetch import FetchRequest

FOLLOWERS_SINCE = 11
"""The first version whose clients may read from a follower (KIP-392)."""

EpochEnd = tuple[int, int]
"""An epoch, and the offset at which it ended."""


def is_replica(request: FetchRequest) -> bool:
    """Return whether a broker asks, to copy the log: here none does."""
    state = request.replica_state
    return (request.replica_id if state is None else state.replica_id) >= 0


def is_ahead(broker: Broker, visible: Visible | None, fetch_offset: int) -> bool:
    """Return whether this is a follower that has not followed the log up to an offset, which may be in it."""
    return not broker.cluster.leads and visible is not None and fetch_offset > visible.high_watermark


def are_ahead(broker: Broker, wanted: Iterable[Wanted]) -> bool:
    """Return whether one of the partitions is wanted from where a follower has not followed it."""
    if broker.cluster.leads:
        return False
    visible = broker.engine.visible
    return any(is_ahead(broker, visible(each.topic, each.partition), each.fetch_offset) for each in wanted)


def unread(broker: Broker, asked: Asked) -> ErrorCode:
    """Return why a partition was not even read; that it is not there comes first, unless it may not be known."""
    if asked.refused is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return asked.refused
    if asked.topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if broker.engine.visible(asked.topic, asked.partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return asked.refused


class Reasons:
    """The reasons to refuse partitions of one request."""

    def __init__(self, broker: Broker, context: RequestContext, *, is_replica: bool) -> None:
        self._broker = broker
        self._is_replica = is_replica
        self._leads = broker.cluster.leads
        self._is_misled = not self._leads and context.version < FOLLOWERS_SINCE
        self.leader_epoch = broker.engine.advice.leader_epoch

    def judge(self, asked: Asked) -> None:
        """Let a partition be read, or say why it is not."""
        refused, ended = self._refusal(asked), None
        if refused is ErrorCode.NONE and self.leader_epoch != FIRST_EPOCH and asked.topic is not None:
            refused, ended = self._divergence(self._broker.engine.visible(asked.topic, asked.partition), asked)
        asked.judged(refused, ended, self.leader_epoch)

    def _refusal(self, asked: Asked) -> ErrorCode:
        if self._is_replica:  # there are none, so this one believes in another cluster than this
            return ErrorCode.UNKNOWN_LEADER_EPOCH if asked.believed_epoch >= 0 else ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self._is_misled:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        believed = max(asked.believed_epoch, UNSAID)  # here any negative one says nothing
        code = leader_epoch_error(believed, self.leader_epoch)
        if code is ErrorCode.NONE and asked.fetched_epoch > self.leader_epoch:  # of such an epoch there is nothing
            return ErrorCode.OFFSET_OUT_OF_RANGE if self._leads else ErrorCode.OFFSET_NOT_AVAILABLE
        return code

    def _divergence(self, visible: Visible | None, asked: Asked) -> tuple[ErrorCode, EpochEnd | None]:
        """Return where the epoch ended of which the client has last read, if it has read further (KIP-595)."""
        if visible is None or asked.fetched_epoch < 0 or asked.fetch_offset < visible.log_start_offset:
            return ErrorCode.NONE, None
        if not self._leads and asked.fetched_epoch >= last_epoch(visible.leader_epochs):  # it may not have ended
            return ErrorCode.NONE, None
        end = end_of(visible.leader_epochs, asked.fetched_epoch, visible.high_watermark)
        if end is None:
            return ErrorCode.OFFSET_OUT_OF_RANGE, None
        return ErrorCode.NONE, end if end[0] < asked.fetched_epoch or end[1] < asked.fetch_offset else None
