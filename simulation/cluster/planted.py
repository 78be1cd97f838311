"""Planted bugs of several brokers with engines: a world that does not find one is blind there.

Each is what some broker could do in good faith, and says which violation shows it. Those of the log alone are in
`canaries`.
"""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from exacta.adapters.shared.follower import SharedFollower
from exacta.core.ids import PartitionId, TransactionId
from exacta.core.snapshot import after_recovery
from exacta.core.state.state import State
from exacta.engine import recovery, replica
from exacta.engine.visible import Changes, visible_changes
from exacta.ports.journal import Failed
from simulation.cluster.canaries import CANARIES as OF_THE_LOG
from simulation.cluster.canaries import Canary


def _catch_up_to_what_is_read(self: SharedFollower, done: Callable[[Failed | None], None]) -> None:
    self._call_soon(done, None)


def _show_what_is_staged(state: State, partition_ids: Iterable[PartitionId]) -> Changes:
    return [
        (key, seen if seen is None else replace(seen, high_watermark=seen.high_watermark + _staged(state, key)))
        for key, seen in visible_changes(state, partition_ids)
    ]


def _staged(state: State, partition_id: PartitionId) -> int:
    return len(state.partitions[partition_id].staged)


_after_recovery = after_recovery


def _give_the_last_id_again(state: State, **options: Any) -> None:
    _after_recovery(state, **options)
    state.volatile.next_transaction_id = TransactionId(max(0, state.reserved_transaction_id - 1_000))


PLANTED = {
    "confirm-by-a-read": OF_THE_LOG["confirm-by-a-read"]._replace(seed=3),
    "follower-does-not-ask-the-primary": Canary(
        "a follower is behind", "stale read", 0, (SharedFollower, "catch_up"), _catch_up_to_what_is_read
    ),
    "follower-shows-up-to-the-end-of-the-tail": OF_THE_LOG["follower-shows-up-to-the-end-of-the-tail"]._replace(
        shows="not durable|logs differ", seed=0
    ),
    "follower-shows-what-is-staged": Canary(
        "a transaction that is open may abort", "visible", 0, (replica, "visible_changes"), _show_what_is_staged
    ),
    "leader-does-not-read-the-rest": OF_THE_LOG["leader-does-not-read-the-rest"]._replace(seed=4),
    "leader-goes-on-after-a-failure": OF_THE_LOG["failure-is-taken-for-success"]._replace(
        shows="not durable|logs differ|lost", seed=0
    ),
    "time-goes-back-over-leaders": Canary(
        "no two clocks agree", "time goes back", 1, (recovery, "_ahead"), lambda clock, by_ms: clock
    ),
    "ids-begin-again-with-a-leader": Canary(
        "ids that were given out came from memory",
        "given out twice|9:",
        0,
        (recovery, "after_recovery"),
        _give_the_last_id_again,
    ),
}
