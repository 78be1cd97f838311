"""The log: all that the fronts ask of it, and the types in which they ask.

This package holds the contract between whatever serves clients (fronts, web interface, metrics, the test kit) and
whatever keeps the log. `exacta.engine` implements it as the single writer of a journal. It holds no rule, no bytes and
no connection.

The contract is four Protocols. `Log` takes commands, and hands out answers. `Lookups` looks into what is durable.
`Pushing` gives the consumers of subscriptions their entries. `Advice` tells what the state is before a command is
decided, and is no answer.

Theory of operation. A client is answered in two ways. `Log.submit` answers commands: their events are durable before
the answer is known, or the answer promises less (decision D4). Every answer that brings no event of its own passes
`Log.confirm`, by way of `read`, `fetch`, `when_shown`, or itself (decision 0063).
"""

from exacta.ports.log.advice import Advice
from exacta.ports.log.answers import Answer, OnAnswers
from exacta.ports.log.counts import FENCING, Counts
from exacta.ports.log.fetching import (
    ALL_BODIES,
    Admitted,
    Convert,
    FetchPartition,
    FetchRequest,
    FetchResult,
    Share,
)
from exacta.ports.log.log import DiskLevel, Log, Sink, View, ViewOf
from exacta.ports.log.lookups import Entries, Lookups
from exacta.ports.log.pushing import AS_STORED, Form, Pushing, Sent
from exacta.ports.log.visible import Visible

__all__ = [
    "ALL_BODIES",
    "AS_STORED",
    "FENCING",
    "Admitted",
    "Advice",
    "Answer",
    "Convert",
    "Counts",
    "DiskLevel",
    "Entries",
    "FetchPartition",
    "FetchRequest",
    "FetchResult",
    "Form",
    "Log",
    "Lookups",
    "OnAnswers",
    "Pushing",
    "Sent",
    "Share",
    "Sink",
    "View",
    "ViewOf",
    "Visible",
]
