"""The producers that partitions know, and whose open transactions hold back their readers (KIP-664)."""

from collections.abc import Iterable, Sequence

from exacta.core.state.state import State
from exacta.core.transactions.description import DescribedProducer, describe_producers


def producers_of(
    state: State, now_ms: int, places: Iterable[tuple[str, int]]
) -> list[Sequence[DescribedProducer] | None]:
    """Return the producers of each of these partitions; None: there is no such partition."""
    return [describe_producers(state, *place) for place in places]
