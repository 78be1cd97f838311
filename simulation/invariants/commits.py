"""The invariant of commit numbers (decision 0058); `invariants.py` says how such functions are made."""

from collections.abc import Iterator

from exacta.core.events import BatchAppended, TransactionEnded
from exacta.core.state.state import State
from simulation.invariants.log import Log


def commits_are_numbered(state: State, log: Log) -> Iterator[str]:
    """The last commit's number is how many there were: batches outside of transactions, and those that committed."""
    batches = {
        (event.partition_id, event.base_offset)
        for event in log
        if isinstance(event, BatchAppended) and not event.transactional
    }
    transactions = {event.transaction_id for event in log if isinstance(event, TransactionEnded) and event.committed}
    expected = len(batches) + len(transactions)
    if state.commit_number != expected:
        yield f"commits: the last one has the number {state.commit_number}, and there were {expected}"
