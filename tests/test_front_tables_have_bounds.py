"""Every table of the engine and of the fronts that is made empty, and filled later, says here what bounds it."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "exacta"
ROOMS = ("engine", "front", "kafka", "pulsar", "web", "ports/log")
CONTAINERS = {"Counter", "OrderedDict", "WeakSet", "WeakValueDictionary", "defaultdict", "deque", "dict", "list", "set"}

REQUESTS = "the budget of requests: what it holds is owed an answer, and its frames are counted until then"
ANSWERS = "the budget of answers"
CONNECTIONS = "max.connections"
STATE = "a table of the state: one value of each entry"
OPTIONS = "made from options, not by clients"

BOUNDS = {
    "Acknowledgements._asked": REQUESTS,
    "Acknowledgements._soon": "the consumers of one connection, and what one turn of the loop reads",
    "Admission._hosts": CONNECTIONS,
    "Announced._by_transaction": "MOST_BYTES; what was announced first is forgotten",
    "BatchReader._told": "_MOST_TOLD; all are forgotten then",
    "Arrivals._coming": "MOST_ARRIVALS",
    "ClientConnection._ends_of_proofs": "a certificate and a login",
    "ClientConnection._outgoing": ANSWERS,
    "ClientConnection._proofs": "a certificate and a login",
    "CommitGroup.entries": REQUESTS,
    "CommitGroup.releases": REQUESTS,
    "CommitGroup.touched": STATE,
    "CommitGroup.written_releases": REQUESTS,
    "CompactionSchedule._compactable_to": STATE,
    "PulsarClientConnection._transactions_begun": "MOST_BEGUN; the first is forgotten",
    "KnownContent._allowed": "MOST_KNOWN; all are forgotten then",
    "KafkaClientConnection._unanswered": "max.in.flight.requests.per.connection",
    "PulsarClientConnection.closed_producers": "MOST_PRODUCERS; all are forgotten then",
    "PulsarClientConnection.producers": "MOST_PRODUCERS of one connection, MOST_PRODUCERS_IN_ALL of all",
    "Consumers._closed": "MOST_CONSUMERS of one connection; the first is forgotten",
    "Consumers._consumers": "MOST_CONSUMERS of one connection, max_delivery_bytes of all",
    "Consumers._opening": REQUESTS,
    "Conversions._at_work": "MOST_AT_ONCE",
    "Conversions._waiting": REQUESTS,
    "Counts.appended": STATE,
    "Counts.compactions": "the outcomes of compaction",
    "Counts.ended": "the causes of ends",
    "Counts.fenced": "the causes of ends",
    "Counts.read_bytes": STATE,
    "Counts.rejections": "the rejections",
    "Deadlines._heap": "timers of the state's entries, and of connections; half of it may be cancelled",
    "Dispatcher._due": STATE,
    "Dispatcher._looked_back": STATE,
    "Dispatcher._reading": STATE,
    "EntrySinks._by_consumer": "consumers: max_delivery_bytes",
    "Dispatcher._without_room": STATE,
    "Engine._parked": REQUESTS,
    "Engine._visible": STATE,
    "EventLines._waiting": REQUESTS,
    "EventLines.hears": "the kinds of events",
    "FetchSessions._sessions": "max.incremental.fetch.session.cache.slots",
    "Fetcher._by_key": REQUESTS,
    "Fetcher._concerned": REQUESTS,
    "Fetcher._long": REQUESTS,
    "Fetcher._waiting": REQUESTS,
    "FrontMeter.apis": "the APIs that are served",
    "Guard._names": OPTIONS,
    "JournalWriter._changes": STATE,
    "LostCoordinators._waiting": "transactional ids of the state, for some seconds",
    "MemoryBudget._watched": CONNECTIONS,
    "MemoryBudget.line": CONNECTIONS,
    "Meter.fronts": "the fronts",
    "Names.subscriptions": "MOST_BYTES of `Announced`",
    "Names.topics": "MOST_BYTES of `Announced`",
    "Producers._by_place": "MOST_PRODUCERS_IN_ALL",
    "PulsarShared.last_messages": REQUESTS,
    "Quotas._buckets": "MOST_BUCKETS; the one that was used least lately is forgotten",
    "Quotas._known": "MOST_BUCKETS; all are forgotten then",
    "Quotas._rates": STATE,
    "Rehearsals._waiting": REQUESTS,
    "Replica._visible": STATE,
    "Revocation._revoked": CONNECTIONS,
    "Sends._gathered": REQUESTS,
    "Sends._unanswered": REQUESTS,
    "Sinks._sinks": CONNECTIONS,
    "StreamsLetGo._waiting": "streams of staged batches: max_staging_bytes",
    "Timers._deadline_of": "timers of the state's entries; they go with these",
    "Turns._connections": CONNECTIONS,
    "Turns._jobs": REQUESTS,
    "WorkLine._waiting": CONNECTIONS,
    "UnreadSubscriptions._chosen": STATE,
    "Until._found": "one at the most",
    "Upkeep._floors": STATE,
    "WebConnection._received": "one read: the connection is not read until its turn",
    "WebServer._admitted": "MOST_CONNECTIONS",
    "WebServer._names": OPTIONS,
    "_Describer._of_defaults": REQUESTS,
}


def attributes_made_empty(tree: ast.Module) -> Iterator[str]:
    """Yield the attributes to which a constructor gives a container that is empty, or a call of a container's name."""
    for each in ast.walk(tree):
        if not isinstance(each, ast.ClassDef):
            continue
        for made in each.body:
            if isinstance(made, ast.FunctionDef) and made.name == "__init__":
                yield from (f"{each.name}.{name}" for name in assigned_containers(made))


def assigned_containers(function: ast.FunctionDef) -> Iterator[str]:
    for each in ast.walk(function):
        if not isinstance(each, ast.Assign | ast.AnnAssign):
            continue
        target = each.targets[0] if isinstance(each, ast.Assign) else each.target
        if isinstance(target, ast.Attribute) and is_container(each.value):
            yield target.attr


def is_container(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return getattr(value.func, "id", getattr(value.func, "attr", "")) in CONTAINERS
    return isinstance(value, ast.Dict | ast.List | ast.Set)


def test_every_table_of_engine_and_fronts_has_a_bound() -> None:
    files = [path for room in ROOMS for path in sorted((SOURCE / room).rglob("*.py"))]
    found = {name for path in files for name in attributes_made_empty(ast.parse(path.read_text(encoding="utf-8")))}
    assert found == BOUNDS.keys(), f"without a bound: {found - BOUNDS.keys()}; gone: {BOUNDS.keys() - found}"
