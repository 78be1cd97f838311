"""Programs written down: what the random ones have found, as short as they got, and one for each meant difference.

`record.py` asks a real Apache Pulsar what it makes of them.
"""

from __future__ import annotations

from typing import Any

from tests.pulsar.differential.programs import Program
from tests.pulsar.differential.steps import (
    EARLIEST,
    LATEST,
    Ack,
    AckUpTo,
    Begin,
    BeginShort,
    Close,
    End,
    Expire,
    Flow,
    LastId,
    Read,
    Redeliver,
    Reload,
    Seek,
    SeekTime,
    Send,
    Subscribe,
    Unsubscribe,
)

_X: dict[str, Any] = {"consumer": "x"}
_Y: dict[str, Any] = {"consumer": "y"}
_T: dict[str, Any] = {"transaction": "t"}
_U: dict[str, Any] = {"transaction": "u"}
_COMMIT: dict[str, Any] = {**_T, "commit": True}
_ABORT: dict[str, Any] = {**_T, "commit": False}
_SHARED = Subscribe(**_X, kind="Shared")
_FAILOVER = Subscribe(**_X, kind="Failover")
_EXCLUSIVE = Subscribe(**_X)

FOUND: dict[str, Program] = {
    # --- what was wrong here, and was mended ---
    "a reader acknowledges without an answer": (
        *(Send(), Read(**_Y), Send(), Ack(**_Y, entry=1, answered=False), Redeliver(**_Y)),
    ),
    "a seek to the time of what an open transaction holds back": (
        *(_FAILOVER, Send(), Begin(**_T), Send(**_T), Send()),
        *(SeekTime(**_X, entry=2), End(**_COMMIT), Send()),
    ),
    "a seek beyond what a transaction has acknowledged, and back": (
        *(_FAILOVER, Send(), Send(), Send(), Begin(**_T), Begin(**_U), Ack(**_X, **_U, entry=1), Seek(**_X, to=2)),
        *(Seek(**_X, to=0), Ack(**_X, **_T, entry=1), End(**_U, commit=False)),
    ),
    # --- what is meant to differ ---
    "a plain cumulative acknowledgement wins": (
        *(_FAILOVER, Send(), Send(), Send(), Begin(**_T), Ack(**_X, **_T, entry=1), AckUpTo(**_X, entry=1)),
        Seek(**_X, to=0),
    ),
    "a plain acknowledgement of a part wins": (
        *(_FAILOVER, Send(count=3), Begin(**_T), Ack(**_X, **_T, entry=0), Ack(**_X, entry=0, index=1)),
        Seek(**_X, to=EARLIEST),
    ),
    "an abort while nobody is connected": (
        *(_SHARED, Send(), Begin(**_T), Ack(**_X, **_T, entry=0), Close(**_X), End(**_ABORT), _SHARED),
    ),
    "an abort of what a seek has skipped": (
        *(_FAILOVER, Send(), Send(), Begin(**_T), Ack(**_X, **_T, entry=0), Seek(**_X, to=1), End(**_ABORT)),
    ),
    "up to a message in a shared subscription": (_SHARED, Send(), AckUpTo(**_X, entry=0), Redeliver(**_X)),
    "a reader in a transaction": (Send(), Read(**_Y), Begin(**_T), Ack(**_Y, **_T, entry=0)),
    "what nobody has seen, without an answer": (
        *(_SHARED, Send(), Begin(**_T), Send(count=3, **_T), Ack(**_X, entry=1, index=1, answered=False)),
    ),
    "a refused acknowledgement of a batch of which a part is acknowledged": (
        *(_SHARED, Send(count=3), Ack(**_X, entry=0, index=2), Begin(**_T), Ack(**_X, **_T, entry=0), Redeliver(**_X)),
    ),
    "up to a message that was not delivered yet": (
        *(Subscribe(**_X, permits=1), Send(), Send(), Send(), Begin(**_T), AckUpTo(**_X, **_T, entry=2)),
        Flow(**_X, permits=1),
    ),
    "a part of a batch over a restart, without a consumer": (
        *(_SHARED, Send(count=3), Ack(**_X, entry=0, index=2), Close(**_X), Reload(), _SHARED),
    ),
    "what nobody has seen": (_EXCLUSIVE, Begin(**_T), Send(**_T), Send(), Ack(**_X, entry=1)),
    "unsubscribing beside others": (_SHARED, Subscribe(**_Y, kind="Shared"), Unsubscribe(**_X), Unsubscribe(**_Y)),
    "a seek closes those that wait": (_FAILOVER, Subscribe(**_Y, kind="Failover"), Send(), Seek(**_X, to=EARLIEST)),
    "both kinds in one transaction": (
        *(_FAILOVER, Send(), Send(), Begin(**_T), AckUpTo(**_X, **_T, entry=1), Ack(**_X, **_T, entry=0)),
    ),
    "both kinds in two transactions": (
        *(_FAILOVER, Send(), Send(), Begin(**_T), Begin(**_U)),
        *(Ack(**_X, **_T, entry=0), AckUpTo(**_X, **_U, entry=1)),
    ),
    "an abort of both kinds": (
        *(_FAILOVER, Send(), Send(), Begin(**_T), Ack(**_X, **_T, entry=1), AckUpTo(**_X, **_T, entry=0)),
        *(End(**_ABORT), Redeliver(**_X)),
    ),
    "a registration after the end": (Begin(**_T), End(**_ABORT), Send(**_T)),
    "a message after the end": (Begin(**_T), Send(**_T), End(**_COMMIT), Send(**_T)),
    "an acknowledgement after the end": (
        *(_SHARED, Send(), Send(), Begin(**_T), Ack(**_X, **_T, entry=0), End(**_ABORT), Ack(**_X, **_T, entry=1)),
    ),
    "up to a message in an open transaction": (
        *(_EXCLUSIVE, Send(), Send(), Send(), Begin(**_T), AckUpTo(**_X, **_T, entry=1), Redeliver(**_X)),
        *(Reload(), Seek(**_X, to=EARLIEST), End(**_COMMIT), Redeliver(**_X)),
    ),
    "an abort of up to a message": (
        *(
            _EXCLUSIVE,
            Send(),
            Send(),
            Send(),
            Begin(**_T),
            AckUpTo(**_X, **_T, entry=1),
            End(**_ABORT),
            Redeliver(**_X),
        ),
    ),
    "an abort that has nothing to give back": (
        *(_FAILOVER, Send(), Send(), Begin(**_T), Ack(**_X, **_T, entry=0), AckUpTo(**_X, entry=0), End(**_ABORT)),
    ),
    "a part of what a transaction has acknowledged": (
        *(_SHARED, Send(count=3), Begin(**_T), Ack(**_X, **_T, entry=0), Ack(**_X, entry=0, index=0)),
    ),
    "up to a message within a batch": (
        *(_EXCLUSIVE, Send(count=3), Ack(**_X, entry=0, index=2), AckUpTo(**_X, entry=0, index=0), Redeliver(**_X)),
    ),
    "what was aborted": (
        *(_SHARED, Send(), Begin(**_T), Send(**_T), End(**_ABORT), Begin(**_U), Ack(**_X, **_U, entry=1)),
    ),
    "a part of a batch over a restart": (_EXCLUSIVE, Send(count=3), Ack(**_X, entry=0, index=0), Reload()),
    "a part of a batch after a seek": (
        *(_SHARED, Send(count=3), Ack(**_X, entry=0, index=0), Seek(**_X, to=EARLIEST)),
    ),
    "a part of a batch in a transaction, after a seek": (
        *(_EXCLUSIVE, Send(count=3), Begin(**_T), Ack(**_X, **_T, entry=0, index=0), End(**_COMMIT)),
        Seek(**_X, to=EARLIEST),
    ),
    "a commit before a seek, over a restart": (
        *(_SHARED, Send(), Send(), Begin(**_T), Ack(**_X, **_T, entry=1), End(**_COMMIT), Seek(**_X, to=EARLIEST)),
        Reload(),
    ),
    "a refusal before a seek, over a restart": (
        *(_EXCLUSIVE, Send(), Send(), Ack(**_X, entry=1), Begin(**_T), Ack(**_X, **_T, entry=1)),
        *(Seek(**_X, to=EARLIEST), Reload()),
    ),
    "how often a batch came of which a part is acknowledged": (
        *(_SHARED, Send(count=3), Redeliver(**_X), Ack(**_X, entry=0, index=0), Redeliver(**_X)),
    ),
    "a batch of which a part is acknowledged": (
        *(_FAILOVER, Send(count=3), Ack(**_X, entry=0, index=0), Begin(**_T), Ack(**_X, **_T, entry=0)),
    ),
    "a backlog of batches, and few permits": (
        *(Send(count=3), Send(), Send(), Subscribe(**_X, permits=2), Flow(**_X, permits=1), Flow(**_X, permits=2)),
    ),
    # --- what is the same, and easily wrong ---
    "a part of a batch after a seek, in order": (
        *(_FAILOVER, Send(count=3), Ack(**_X, entry=0, index=0), Seek(**_X, to=EARLIEST)),
    ),
    "a plain acknowledgement wins": (
        *(_SHARED, Send(), Send(), Begin(**_T), Ack(**_X, **_T, entry=0), Ack(**_X, entry=0), End(**_ABORT)),
        *(Redeliver(**_X), Close(**_X), _SHARED),
    ),
    "pending over a restart, a seek and a new consumer": (
        *(_SHARED, Send(), Send(count=3), Begin(**_T), Ack(**_X, **_T, entry=0), Ack(**_X, **_T, entry=1, index=1)),
        *(Redeliver(**_X), Close(**_X), _SHARED, Reload(), Seek(**_X, to=EARLIEST), End(**_ABORT)),
    ),
    "conflicts": (
        *(_SHARED, Send(), Send(count=3), Begin(**_T), Begin(**_U), Ack(**_X, **_T, entry=0), Ack(**_X, **_U, entry=0)),
        *(Ack(**_X, **_T, entry=0), Ack(**_X, **_T, entry=1, index=0), Ack(**_X, **_U, entry=1, index=1)),
        *(Ack(**_X, **_U, entry=1, index=0), End(**_COMMIT), Ack(**_X, **_U, entry=0), End(**_U, commit=False)),
    ),
    "conflicts up to a message": (
        *(_FAILOVER, Send(), Send(), Send(), Begin(**_T), Begin(**_U), AckUpTo(**_X, **_T, entry=1)),
        *(AckUpTo(**_X, **_T, entry=0), AckUpTo(**_X, **_U, entry=2), AckUpTo(**_X, **_T, entry=2)),
        *(End(**_COMMIT), AckUpTo(**_X, **_U, entry=2), AckUpTo(**_X, **_U, entry=1)),
    ),
    "an abort brings back what it had, or everything": (
        *(_FAILOVER, Subscribe(**_Y, subscription="r", kind="Shared"), Send(), Send(), Send(), Begin(**_T)),
        *(Ack(**_X, **_T, entry=1), Ack(**_Y, **_T, entry=1), End(**_ABORT)),
    ),
    "the last message that is visible": (
        *(_EXCLUSIVE, LastId(**_X), Begin(**_T), Send(count=3, **_T), LastId(**_X), End(**_ABORT), LastId(**_X)),
        *(Send(count=3), Begin(**_T), Send(**_T), Send(), LastId(**_X), End(**_ABORT), LastId(**_X)),
        *(Begin(**_T), Send(**_T), End(**_ABORT), LastId(**_X)),
    ),
    "over its time": (
        *(_SHARED, Send(), Send(), BeginShort(**_U), Ack(**_X, **_U, entry=0), Send(**_U), Send(), Expire(**_U)),
        *(End(**_U, commit=True), LastId(**_X)),
    ),
    "who is active": (
        *(Subscribe(**_Y, kind="Failover"), Send(), Send(), _FAILOVER, Ack(**_X, entry=0), Send(), Close(**_X)),
        *(_FAILOVER, Close(**_Y), Send()),
    ),
    "permits": (
        *(Subscribe(**_X, kind="Shared", permits=2), Subscribe(**_Y, kind="Shared", permits=1)),
        *(Send(), Send(), Send(), Send(), Flow(**_Y, permits=2), Ack(**_X, entry=0), Redeliver(**_X)),
        *(Flow(**_X, permits=1), Close(**_Y), Flow(**_X, permits=4), Send()),
    ),
    "readers": (
        *(Send(), Send(count=3), Read(**_X, after=0), Read(**_Y, after=LATEST), Send(), Seek(**_Y, to=EARLIEST)),
        *(Reload(), Close(**_X), Read(**_X, after=1)),
    ),
}
