"""The invariants of the bytes that the tables of the state take."""

from collections.abc import Iterator

from exacta.core.state import weights
from exacta.core.state.state import State
from exacta.core.state.weights import weigh
from exacta.core.subscriptions.fold import FEW_PASSED
from exacta.core.values.usage import Table


def tables_are_counted(state: State) -> Iterator[str]:
    """Invariant 12: each table's bytes are those of its entries, and each owner's are those of its own entries."""
    weighed = weigh(state)
    for table, usage in state.volatile.usage.items():
        if usage.total != weighed[table].total:
            yield f"12: {table.name} counts {usage.total} bytes, and has {weighed[table].total}"
        owned: dict[str, int] = {}
        for charge in usage.charges.values():
            owned[charge.owner] = owned.get(charge.owner, 0) + charge.size
        if {owner: size for owner, size in owned.items() if size} != usage.owned:
            yield f"12: {table.name} counts {usage.owned} for its owners, and has {owned}"
        if sum(owned.values()) > usage.total:
            yield f"12: the owners of {table.name} have more than there is: {owned} of {usage.total}"


def tables_keep_their_bounds(state: State) -> Iterator[str]:
    """Invariant 12: no table is larger than its bound, and no owner has more than half of one."""
    for table in Table:
        usage, most = state.volatile.usage[table], getattr(state.limits, table.value)
        if table is Table.DELIVERIES:  # what is for nobody is known of each subscription, room or not
            most += weights.RUN * FEW_PASSED * len(state.volatile.deliveries)
        if usage.total > most:
            yield f"12: {table.name} has {usage.total} bytes, above {most}"
        for owner, size in usage.owned.items():
            if size > most // 2:
                yield f"12: {owner} has {size} bytes of {table.name}, above half of {most}"
