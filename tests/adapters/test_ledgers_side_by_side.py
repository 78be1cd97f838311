"""The ledger in PostgreSQL and the one in memory, side by side: whatever is asked of them, they answer the same."""

from contextlib import ExitStack
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from exacta.ports.shared import (
    Appended,
    BrokerSeen,
    CatalogChange,
    CatalogEntry,
    Claimed,
    Head,
    Kind,
    Ledger,
    SharedBroker,
    TailGroup,
)
from exacta.ports.shared.ledger import GONE_AFTER_MS, SWEEP_AFTER_MS
from tests.adapters.ledger_benches import BENCHES, LedgerBench, wait
from tests.shares import examples

BROKERS = st.integers(0, 2)
SHORT_MS = 1_000
"""The real clock moves on by less than this in a test, and no time below is as near to a bound."""


class SideBySide(RuleBasedStateMachine):
    """Both ledgers, each with three brokers."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.benches: list[LedgerBench] = []
        self.ledgers: list[list[Ledger]] = []
        self.head = Head(0, None, 0, 0, 0, 0, 0)
        self.ends = [0]
        self.instances = [f"instance {number}" for number in range(3)]
        self.keys: list[str] = []
        """All keys that were intended: each is new."""
        self.claimed = [[0], [0], [0]]
        """The epochs in which each broker has led; a broker appends in no other."""

    @initialize()
    def open(self) -> None:
        for name in ("memory", "postgres"):
            bench = self.stack.enter_context(BENCHES[name]())
            self.benches.append(bench)
            self.ledgers.append([bench.open() for _ in range(3)])

    def teardown(self) -> None:
        self.stack.close()

    def both(self, broker: int, method: str, *arguments: object) -> Any:
        """Ask both, and return what both have answered."""
        answers = [
            wait(bench, getattr(ledgers[broker], method), *arguments)
            for bench, ledgers in zip(self.benches, self.ledgers, strict=True)
        ]
        told = [_comparable(answer) for answer in answers]
        assert told[0] == told[1], (method, arguments)
        return answers[0]

    # --- the lead and the tail ----------------------------------------------------------------------------------------

    @rule(broker=BROKERS, back=st.sampled_from([0, 0, 0, 1]))
    def claim(self, broker: int, back: int) -> None:
        head = self.both(broker, "read_head")
        seen = head._replace(epoch=head.epoch - back)
        claimed = self.both(broker, "claim", seen, broker, self.instances[broker])
        if isinstance(claimed, Claimed):
            self.claimed[broker].append(claimed.epoch)
        else:
            self.claimed[broker] = [0]  # PostgreSQL's ledger has given up its own lead to try

    def epoch(self, broker: int, back: int) -> int:
        """Return the epoch in which a broker has led last, or the one before."""
        return self.claimed[broker][-1 - back :][0]

    @rule(broker=BROKERS, back=st.sampled_from([0, 0, 0, 1]), data=st.data())
    def append(self, broker: int, back: int, data: st.DataObject) -> None:
        head = self.both(broker, "read_head")
        last = self.ends[-1]
        position = data.draw(st.sampled_from([last, last, last, *self.ends[-3:], head.tail_from, last + 1]))
        body = data.draw(st.binary(min_size=1, max_size=20))
        durable, catalog = data.draw(st.integers(0, 1 << 40)), data.draw(st.integers(0, 9))
        group = TailGroup(position, position + len(body), self.epoch(broker, back), durable, catalog, body)
        if isinstance(self.both(broker, "append", group), Appended):
            self.ends.append(group.end)

    @rule(broker=BROKERS, back=st.sampled_from([0, 0, 1]), durable=st.integers(0, 100))
    def confirm_and_beat(self, broker: int, back: int, durable: int) -> None:
        self.both(broker, "confirm", self.both(broker, "read_head").epoch - back)
        self.both(broker, "beat", self.epoch(broker, back), durable)

    @rule(broker=BROKERS, data=st.data())
    def read(self, broker: int, data: st.DataObject) -> None:
        at = data.draw(st.sampled_from([*self.ends, self.ends[-1] + 3]))
        self.both(broker, "read_tail", at, data.draw(st.integers(0, 60)))
        self.both(broker, "read_body", at, data.draw(st.integers(0, 25)), data.draw(st.integers(0, 25)))
        self.both(broker, "read_catalog")
        self.both(broker, "found", b"about %d" % broker)

    # --- the catalog and the brokers ----------------------------------------------------------------------------------

    @rule(broker=BROKERS, count=st.integers(0, 3))
    def intend(self, broker: int, count: int) -> None:
        keys = [f"key {number}" for number in range(len(self.keys), len(self.keys) + count)]
        self.keys += keys
        self.both(broker, "intend", keys)

    @rule(broker=BROKERS, back=st.sampled_from([0, 0, 0, 1]), data=st.data(), offloads=st.booleans())
    def change(self, broker: int, back: int, data: st.DataObject, offloads: bool) -> None:
        if not (epoch := self.epoch(broker, back)):
            return
        head, catalog = self.both(broker, "read_head"), self.both(broker, "read_catalog")
        there = [each.key for each in catalog.entries]
        added = [
            CatalogEntry(key, data.draw(st.sampled_from(Kind)), data.draw(st.integers(0, 3)), 9, 1, 2, 3, 4, 5, 6)
            for key in data.draw(st.lists(st.sampled_from(["not intended", *self.keys[-4:]]), max_size=2, unique=True))
            if key not in there
        ]
        removed = data.draw(
            st.lists(st.sampled_from([*there, "unknown"] if there else ["unknown"]), max_size=2, unique=True)
        )
        tail_from = (
            data.draw(st.sampled_from([end for end in self.ends if end >= head.tail_from])) if offloads else None
        )
        change = CatalogChange(added, removed, tail_from)
        self.both(broker, "change_catalog", epoch, change)

    @rule(broker=BROKERS, of=BROKERS, behind=st.integers(0, 1))
    def announce(self, broker: int, of: int, behind: int) -> None:
        """Announce a broker under its own node id, or under another one's."""
        catalog = max(0, self.both(broker, "read_head").catalog - behind)
        self.both(broker, "announce", SharedBroker(of, self.instances[broker], b"%d" % broker, catalog, 7))
        self.both(broker, "read_brokers")

    @rule(broker=BROKERS, ms=st.sampled_from([GONE_AFTER_MS // 2, GONE_AFTER_MS, SWEEP_AFTER_MS]))
    def sweep(self, broker: int, ms: int) -> None:
        for bench in self.benches:
            bench.pass_ms(ms + SHORT_MS)
        swept = self.both(broker, "sweep")
        self.both(broker, "forget", list(swept)[:1])

    @rule(broker=BROKERS)
    def begin_again(self, broker: int) -> None:
        """End a broker, and begin another instance of it."""
        self.instances[broker] += "'"
        self.claimed[broker] = [0]
        for bench, ledgers in zip(self.benches, self.ledgers, strict=True):
            ledgers[broker].close()
            ledgers[broker] = bench.open()


def _comparable(answer: Any) -> object:
    """Return an answer by its type and value, without what depends on the clock, or is in no order."""
    if isinstance(answer, Head):
        return answer._replace(now_ms=0, beat=min(answer.beat, 1))
    if isinstance(answer, list | tuple) and not hasattr(answer, "_fields"):
        return sorted((_comparable(each) for each in answer), key=repr)
    if isinstance(answer, BrokerSeen):
        return answer.broker, answer.age_ms // (SHORT_MS * 10)
    if isinstance(answer, TailGroup):
        return answer._replace(body=bytes(answer.body))
    return repr(answer)


TestSideBySide = SideBySide.TestCase
TestSideBySide.settings = settings(
    max_examples=examples(40),
    stateful_step_count=40,
    deadline=None,
    phases=[Phase.generate],  # each example takes a second
)
