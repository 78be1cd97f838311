"""Answers and values that the tests of the consumer protocol expect."""

from exacta.core.rejections import Rejection
from tests.core.world import SMALL

FIRST, SECOND = 2, 3
"""The first epochs that members of a new group have, as in Apache Kafka."""
SESSION_MS = SMALL.group_consumer_session_timeout_ms
FENCED, UNKNOWN, STALE = Rejection.FENCED_MEMBER_EPOCH, Rejection.UNKNOWN_MEMBER_ID, Rejection.STALE_MEMBER_EPOCH
