"""Cycles of dependencies between transactions, as Adya defines them and Jepsen looks for them.

Theory of operation. Nodes are the transactions that took effect. The order of versions is the order of offsets. Edges:
*ww* from a transaction to the one whose record comes next in some partition; *wr* from a transaction to one that read a
record of it while it was open (polled it, or transformed it). The report shows the strongly connected components of
more than one transaction, each with a short cycle of the class in question. Anti-dependencies (rw) are left out: a
Kafka reader is never promised the newest record.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import pairwise

from exacta.verify.analysis.anomalies import Anomaly, Kind
from exacta.verify.analysis.ledger import Fate, Ledger
from exacta.verify.history import Isolation

Graph = Mapping[str, set[str]]


def cycles(ledger: Ledger) -> Iterator[Anomaly]:
    """Find cycles by reads alone, by writes alone, and by both."""
    by_writes, by_reads = _writes(ledger), _reads(ledger)
    for component in components(by_reads):
        yield _anomaly(Kind.G1C, ledger, shortest_cycle(by_reads, component), component, by_reads)
    for component in components(by_writes):
        yield _anomaly(Kind.G0, ledger, shortest_cycle(by_writes, component), component, {})
    both = {node: by_writes.get(node, set()) | by_reads.get(node, set()) for node in sorted({*by_writes, *by_reads})}
    for component in components(both):
        mixed = mixed_cycle(by_reads, by_writes, component)
        if mixed:
            yield _anomaly(Kind.G1C_BY_WRITES, ledger, mixed, component, by_reads)


def components(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components of more than one node (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(sorted(graph.get(root, ()))))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(sorted(graph.get(successor, ())))))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = [stack.pop()]
                    while component[-1] != node:
                        component.append(stack.pop())
                    on_stack.difference_update(component)
                    if len(component) > 1:
                        found.append(component)
    return found


def shortest_cycle(graph: Graph, component: list[str]) -> list[str]:
    """Return the nodes of a shortest cycle through the component's first node."""
    members, start = set(component), component[0]
    came_from: dict[str, str] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for successor in sorted(graph.get(node, set()) & members):
            if successor == start:
                path = [node]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return path[::-1]
            if successor not in came_from:
                came_from[successor] = node
                queue.append(successor)
    raise AssertionError("a component of more than one node has a cycle through each")


def mixed_cycle(by_reads: Graph, by_writes: Graph, component: list[str]) -> list[str]:
    """Return a cycle of a component with a step that only a read makes and one that only an order of writes makes.

    Empty where none was found: the component then has cycles of reads and cycles of writes, each of a class of its own.
    """
    members = set(component)
    for node in sorted(component):
        for reader in sorted((by_reads.get(node, set()) - by_writes.get(node, set())) & members):
            found = _way_back(by_reads, by_writes, members, reader, node)
            if len(set(found)) == len(found) > 0:
                return found
    return []


def _way_back(by_reads: Graph, by_writes: Graph, members: set[str], start: str, end: str) -> list[str]:
    """Return the nodes of a shortest walk from `start` to `end` with a step that only an order of writes makes."""
    first = (start, False)
    came_from: dict[tuple[str, bool], tuple[str, bool]] = {}
    queue = deque([first])
    while queue:
        at = queue.popleft()
        node, written = at
        reads, writes = by_reads.get(node, set()), by_writes.get(node, set())
        for successor in sorted((reads | writes) & members):
            step = (successor, written or successor not in reads)
            if successor == start or step in came_from or step == (end, False):
                continue
            came_from[step] = at
            if step == (end, True):
                path = [step]
                while path[-1] != first:
                    path.append(came_from[path[-1]])
                return [name for name, _ in reversed(path)]
            queue.append(step)
    return []


def _writes(ledger: Ledger) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for reading in ledger.final(Isolation.COMMITTED).values():
        before: str | None = None
        for _, number in sorted(reading):
            transaction = ledger.records[number].transaction
            if transaction is None or transaction.fate is Fate.ABORTED:
                continue
            if before is not None and before != transaction.name:
                graph.setdefault(before, set()).add(transaction.name)
            before = transaction.name
    return graph


def _reads(ledger: Ledger) -> dict[str, set[str]]:
    at = {
        (*place, offset): number
        for place, reading in ledger.final(Isolation.COMMITTED).items()
        for offset, number in reading
    }
    graph: dict[str, set[str]] = {}
    for transaction in ledger.transactions.values():
        if transaction.fate is Fate.ABORTED:
            continue
        sources = {at[source] for source in transaction.sources if source in at}
        for number in transaction.read | sources:
            writer = ledger.records[number].transaction
            if writer is not None and writer is not transaction and writer.fate is not Fate.ABORTED:
                graph.setdefault(writer.name, set()).add(transaction.name)
    return graph


def _anomaly(kind: Kind, ledger: Ledger, cycle: list[str], component: list[str], by_reads: Graph) -> Anomaly:
    transactions = [ledger.transactions[name] for name in cycle]
    places = [ledger.records[number].place for each in transactions for number in each.records]
    steps = [
        f"{'was read by' if after in by_reads.get(before, ()) else 'wrote before'} {after}"
        for before, after in pairwise([*cycle, cycle[0]])
    ]
    of = f" (of {len(component)} transactions in a knot)" if len(component) > len(cycle) else ""
    return Anomaly(
        kind=kind,
        message=" ".join([cycle[0], *steps]) + of,
        at_us=min(each.begin_us for each in transactions),
        transactions=tuple(cycle),
        partitions=tuple(dict.fromkeys(place for place in places if place is not None)),
        processes=tuple(dict.fromkeys(each.process for each in transactions)),
    )
