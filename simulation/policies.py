"""The retention of a world's topics, the bounds of their backlogs, and what stages transactions, drawn by chance.

The clients' clocks are a day behind the broker's (`clock`); so are the ages of records that bear their producers' time.
"""

import random
from collections.abc import Iterable

from exacta.core.values.transaction_buffer import SIDECAR, TRANSACTION_BUFFER
from simulation.clock import CLIENTS_BEHIND_MS
from simulation.disk.simulated import UNBOUNDED

FOR_EVER_MS = 10 * 365 * 24 * 3_600_000
"""This is longer than any world lasts, wherever its clocks are set."""

HOLD, REFUSE, EVICT = "producer_request_hold", "producer_exception", "consumer_backlog_eviction"
"""The policies of backlog quotas."""

FEW_STAGED_BYTES = 1_500
"""The bytes of a dozen batches."""

Policies = dict[str, dict[str, str]]
"""The configurations of each topic."""


def draw(chance: random.Random) -> Policies:
    """Say how `keyed` is compacted, and when records of `aging` are old; in some worlds neither happens."""
    return {
        "keyed": _compacted(chance) if chance.random() < 0.85 else {},
        "aging": _aging(chance, "delete") if chance.random() < 0.9 else {},
    }


def draw_backlogs(chance: random.Random, retention: dict[str, str]) -> dict[str, str]:
    """Say when messages of a topic with this retention expire, and what may be kept for subscriptions alone."""
    if chance.random() < 0.3:
        return {}
    behind_ms = 0 if "message.timestamp.type" in retention else CLIENTS_BEHIND_MS
    found = {"pulsar.backlog.quota.policy": chance.choice([HOLD, HOLD, REFUSE, EVICT, EVICT])}
    if chance.random() < 0.3:
        found["pulsar.message.ttl.ms"] = str(behind_ms + chance.choice([1, 500, 5_000]))
    if chance.random() < 0.7:
        found["pulsar.backlog.quota.bytes"] = str(chance.choice([0, 300, 2_000]))
    if chance.random() < 0.3:
        found["pulsar.backlog.quota.ms"] = str(behind_ms + chance.choice([500, 5_000]))
    return found


def draw_buffers(chance: random.Random, topics: Iterable[str]) -> Policies:
    """Say in which topics transactions lie aside until they commit; in about half of the worlds in none."""
    if chance.random() < 0.5:
        return {}
    share = chance.choice([0.3, 0.6, 0.6, 1.0])
    return {topic: {TRANSACTION_BUFFER: SIDECAR} for topic in topics if chance.random() < share}


def draw_staging_limits(chance: random.Random) -> dict[str, int]:
    """Say how much is staged in the state, and how much at all: so little that streams spill, and sometimes too little.

    A batch has about a hundred bytes.
    """
    return {
        "max_held_bytes_per_stream": chance.choice([100, 300, 600, 256 << 10]),
        "max_held_batches_per_stream": chance.choice([1, 2, 3, 500]),
        "max_held_bytes": chance.choice([300, 1_000, 32 << 20]),
        "max_staged_bytes": chance.choice([FEW_STAGED_BYTES, *[1 << 40] * 4]),
    }


def draw_expiry(chance: random.Random) -> dict[str, int]:
    """Say when groups are forgotten: in a quarter of the worlds soon, and in steps, in the others never."""
    if chance.random() >= 0.25:
        return {}
    return {
        "offsets_retention_ms": chance.choice([2_000, 4_000, 8_000]),
        "group_expiry_interval_ms": chance.choice([100, 500, 2_000]),
        "max_offsets_looked_at": chance.choice([1, 4, 10_000]),
    }


def draw_disk(chance: random.Random) -> int:
    """Say how large the disk is: in a sixth of the worlds so small that others fill it, and its reserve is used up."""
    return chance.choice([512 << 10, 1 << 20]) if chance.random() < 1 / 6 else UNBOUNDED


def draw_input(chance: random.Random) -> dict[str, str]:
    """Say how the input of Pulsar's program is compacted, if it is."""
    return _with_compaction(chance, _stamped(chance, "compact")) if chance.random() < 0.5 else {}


def _compacted(chance: random.Random) -> dict[str, str]:
    policy = _aging(chance, "compact,delete") if chance.random() < 0.15 else _stamped(chance, "compact")
    return _with_compaction(chance, policy)


def _with_compaction(chance: random.Random, policy: dict[str, str]) -> dict[str, str]:
    behind_ms = 0 if "message.timestamp.type" in policy else CLIENTS_BEHIND_MS
    policy["segment.ms"] = str(behind_ms + chance.choice([1, 1, 500, 5_000]))
    policy["min.cleanable.dirty.ratio"] = chance.choice(["0.0", "0.1", "0.5"])
    policy["delete.retention.ms"] = str(chance.choice([0, 0, 2_000, 10_000, FOR_EVER_MS]))
    if chance.random() < 0.2:
        policy["min.compaction.lag.ms"] = str(behind_ms + 4_000)
    if chance.random() < 0.2:
        policy["max.compaction.lag.ms"] = str(behind_ms + 4_000)
    return policy


def _aging(chance: random.Random, policy: str) -> dict[str, str]:
    # Seldom by the producers' time: a marker has the broker's, and so stops retention for a day.
    stamped = _stamped(chance, policy, by_broker=0.8)
    behind_ms = 0 if "message.timestamp.type" in stamped else CLIENTS_BEHIND_MS
    return {**stamped, "retention.ms": str(behind_ms + chance.choice([1, 1, 500, 3_000, 15_000]))}


def _stamped(chance: random.Random, policy: str, *, by_broker: float = 0.5) -> dict[str, str]:
    times = {"message.timestamp.type": "LogAppendTime"} if chance.random() < by_broker else {}
    return {"cleanup.policy": policy, **times}
