"""The cost of transactions to a broker that knows, holds or has open a great deal: `python -m benchmarks.growth`.

For each kind of plenty a data directory is filled by the engine itself, without a network in between. Then `exacta
serve` runs on it and on an empty one by turns, with the same load; the ratio of the medians is what growth costs.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.batches import batch
from benchmarks.bounds import LEAST_RATIO_OF_EMPTY
from benchmarks.brokers import served
from benchmarks.cases import CASES, BrokerCase
from benchmarks.figures import Figure, Summary, summarise
from benchmarks.kafka.distribution import CACHE
from benchmarks.machine import facts
from benchmarks.session import Scale, Session
from benchmarks.storage.filling import PARTITIONS_PER_TOPIC, Filler, new_topic
from exacta.core.commands import AppendBatch, Command, InitProducerId
from exacta.core.ids import ProducerEpoch, ProducerId, TransactionVersion
from exacta.core.replies import ProducerBoundReply
from exacta.core.writers import IdempotentWriter

TIMEOUT_MS = 900_000
AT_ONCE = 1_000
FIGURES = ("txn/s", "p50 ms", "p99 ms")


async def nothing(filler: Filler) -> None:
    """Leave it empty."""


async def transactional_ids(filler: Filler) -> None:
    """Let a million transactional ids be known."""
    await _bind(filler, 1_000_000)


async def partitions(filler: Filler) -> None:
    """Create 10,000 partitions with a batch in each."""
    for number in range(10_000 // PARTITIONS_PER_TOPIC):
        topic = f"filled-{number}"
        await filler.submit([new_topic(topic, PARTITIONS_PER_TOPIC)])
        await filler.append([(topic, index) for index in range(PARTITIONS_PER_TOPIC)])


async def open_transactions(filler: Filler) -> None:
    """Have 10,000 transactions open, in a hundred partitions."""
    await filler.submit([new_topic("open", PARTITIONS_PER_TOPIC)])
    bound = await _bind(filler, 10_000)
    for begin in range(0, len(bound), AT_ONCE):
        commands: list[Command] = []
        payloads: list[bytes | None] = []
        for number, (transactional_id, producer_id, epoch) in enumerate(bound[begin : begin + AT_ONCE]):
            data = batch(filler.now_ms(), producer_id, epoch, base_sequence=0, size=100)
            payloads.append(data)
            commands.append(
                AppendBatch(
                    topic="open",
                    partition=number % PARTITIONS_PER_TOPIC,
                    record_count=1,
                    size=len(data),
                    max_timestamp_ms=filler.now_ms(),
                    writer=IdempotentWriter(
                        producer_id=producer_id,
                        producer_epoch=epoch,
                        base_sequence=0,
                        transactional_id=transactional_id,
                        version=TransactionVersion.V2,
                    ),
                )
            )
        await filler.submit(commands, payloads)


async def _bind(filler: Filler, count: int) -> list[tuple[str, ProducerId, ProducerEpoch]]:
    bound: list[tuple[str, ProducerId, ProducerEpoch]] = []
    for begin in range(0, count, AT_ONCE):
        names = [f"known-{number}" for number in range(begin, min(count, begin + AT_ONCE))]
        commands: list[Command] = [
            InitProducerId(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS) for name in names
        ]
        for name, answer in zip(names, await filler.submit(commands), strict=True):
            assert isinstance(answer, ProducerBoundReply)
            bound.append((name, answer.producer_id, answer.producer_epoch))
    return bound


KINDS: dict[str, Callable[[Filler], Awaitable[None]]] = {
    "empty": nothing,
    "1,000,000 transactional ids": transactional_ids,
    "10,000 partitions": partitions,
    "10,000 open transactions": open_transactions,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill, run by turns, print the table; return 0, or 1 where a ratio is below what is required."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description="Measure what growth costs.")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each kind (default: 3)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measured part (default: 5)")
    parser.add_argument("--case", action="append", choices=["txn-1", "txn-50"], help="a case (default: both)")
    parser.add_argument("--work", type=Path, default=CACHE, help="folder for the data (default: .cache/)")
    parser.add_argument("--fill", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.fill:
        kind, data = options.fill
        asyncio.run(Filler.run(Path(data), KINDS[kind]))
    options.work.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="growth-", dir=options.work) as folder:
        for kind in KINDS:
            Filler.in_process(["benchmarks.growth", "--fill", kind, str(Path(folder) / kind)])
        scale = Scale(seconds=options.seconds)
        found = _measure(Path(folder), options.case or ["txn-1", "txn-50"], options.rounds, scale)
    print("\n".join(facts(options.work)), end="\n\n")
    rows, met = _rows(found)
    print(report.table(["case", "figure", "broker", "median (min–max)", "of the empty one's", "required"], rows))
    return 0 if met else 1


Found = dict[tuple[str, str, str], list[float]]
"""The figures of each round, by case, figure and kind."""


def _measure(folder: Path, cases: Sequence[str], rounds: int, scale: Scale) -> Found:
    found: Found = {}
    for _ in range(rounds):
        for name in cases:
            for kind in KINDS:
                with served(folder / kind, folder / "log", {"max.transactional.ids": 2_000_000}) as broker:
                    broker.wait_until_ready()
                    session = Session(broker, scale)
                    case = CASES[name]
                    assert isinstance(case, BrokerCase)
                    figures: list[Figure] = list(case.run(session, name))
                    session.delete_topics()
                for figure in figures:
                    found.setdefault((name, figure.name, kind), []).append(figure.value)
    return found


def _rows(found: Found) -> tuple[list[list[str]], bool]:
    rows: list[list[str]] = []
    met = True
    for case in dict.fromkeys(case for case, _, _ in found):
        for figure in FIGURES:
            empty: Summary = summarise(found[case, figure, "empty"])
            for kind in KINDS:
                each = summarise(found[case, figure, kind])
                ratio = each.median / empty.median
                is_required = figure == FIGURES[0] and kind != "empty"
                met = met and (not is_required or ratio >= LEAST_RATIO_OF_EMPTY)
                required = f"≥ {LEAST_RATIO_OF_EMPTY}" if is_required else ""
                rows.append([case, figure, kind, report.spread(each), f"{ratio:.2f}", required])
    return rows, met


if __name__ == "__main__":
    sys.exit(main())
