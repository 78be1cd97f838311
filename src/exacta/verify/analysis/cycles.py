"""Cycles of dependencies between transactions, as Adya defines them and Jepsen looks for them.

Theory of operation. Nodes are the transactions that took effect. The order of versions is the order of offsets. Edges:
*ww* from a transaction to the one whose record comes next in some partition; *wr* from a transaction to one that read
a record of it while it was open (polled it, or transformed it). Strongly connected components of more than one
transaction are what is reported, with a shortest cycle as the example. Anti-dependencies (rw) are left out: a Kafka
reader is never promised the newest record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from exacta.verify.analysis.anomalies import Anomaly, Kind
from exacta.verify.analysis.ledger import Fate, Ledger
from exacta.verify.history import Isolation

Graph = Mapping[str, set[str]]


def cycles(ledger: Ledger) -> Iterator[Anomaly]:
    """Find cycles by reads alone, by writes alone, and by both."""
    by_writes, by_reads = _writes(ledger), _reads(ledger)
    for component in components(by_reads):
        yield _anomaly(Kind.G1C, ledger, by_reads, component, "read")
    for component in components(by_writes):
        yield _anomaly(Kind.G0, ledger, by_writes, component, "wrote before")
    both = {node: by_writes.get(node, set()) | by_reads.get(node, set()) for node in {*by_writes, *by_reads}}
    alone = [set(component) for component in components(by_reads)]
    for component in components(both):
        members = set(component)
        reads = any(by_reads.get(node, set()) & members for node in component)
        if reads and members not in alone:
            yield _anomaly(Kind.G1C_BY_WRITES, ledger, both, component, "came before")


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


def _anomaly(kind: Kind, ledger: Ledger, graph: Graph, component: list[str], how: str) -> Anomaly:
    cycle = shortest_cycle(graph, component)
    transactions = [ledger.transactions[name] for name in cycle]
    places = [ledger.records[number].place for each in transactions for number in each.records]
    arrow = {"read": " was read by "}.get(how, f" {how} ")
    of = f" (of {len(component)} transactions in a knot)" if len(component) > len(cycle) else ""
    return Anomaly(
        kind=kind,
        message=arrow.join([*cycle, cycle[0]]) + of,
        at_us=min(each.begin_us for each in transactions),
        transactions=tuple(cycle),
        partitions=tuple(dict.fromkeys(place for place in places if place is not None)),
        processes=tuple(dict.fromkeys(each.process for each in transactions)),
    )
