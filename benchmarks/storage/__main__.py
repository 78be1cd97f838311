"""The command line: `python -m benchmarks.storage [--gigabytes N] [--partitions N]`.

A log is filled, its writer killed, and `exacta serve` started on it: how long until a message is acknowledged, and how
much memory is resident, before and after records from everywhere in the log were read.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from confluent_kafka import TopicPartition

from benchmarks import clients
from benchmarks.brokers import Broker, first_acknowledgement_s, served
from benchmarks.kafka.distribution import CACHE
from benchmarks.machine import facts
from benchmarks.storage.filling import PARTITIONS_PER_TOPIC, Filler

READS = 400
TIMEOUT_S = 60.0


def main() -> int:
    """Fill, kill, start, read; print what it took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.storage", description="Measure a large log.")
    parser.add_argument("--gigabytes", type=float, default=10.0, help="size of the log (default: 10)")
    parser.add_argument("--partitions", type=int, default=10_000, help="how many it is spread over (default: 10,000)")
    parser.add_argument("--starts", type=int, default=3, help="how often the server is started (default: 3)")
    parser.add_argument("--work", type=Path, default=CACHE, help="folder for the data (default: .cache/)")
    options = parser.parse_args()
    options.work.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="storage-", dir=options.work) as folder:
        data = Path(folder) / "data"
        gigabytes, partitions = str(options.gigabytes), str(options.partitions)
        Filler.in_process(["benchmarks.storage.filling", str(data), gigabytes, partitions])
        files = list((data / "journal").iterdir())
        size = sum(path.stat().st_size for path in files)
        segment_indexes = sum(path.stat().st_size for path in files if path.suffix == ".index")
        print("\n".join(facts(options.work)))
        indexes = f"indexes {segment_indexes / 1e6:.0f} MB"
        print(f"{size / 1e9:.1f} GB in {len(files)} files ({indexes}), {options.partitions} partitions")
        for _ in range(options.starts):
            with served(data, Path(folder) / "log") as broker:
                assert broker.server is not None
                seconds, started = _first_acknowledgement(broker)
                _read_everywhere(broker.bootstrap, options.partitions)
                used = broker.usage()
                assert used is not None
                print(
                    f"start to the first acknowledged message {seconds:.2f} s; resident {started / 1e6:.0f} MB then, "
                    f"{used.resident_bytes / 1e6:.0f} MB after {READS} reads from everywhere"
                )
                broker.server.kill()
    return 0


def _first_acknowledgement(broker: Broker) -> tuple[float, int]:
    seconds = first_acknowledgement_s(broker)
    used = broker.usage()
    assert used is not None
    return seconds, used.resident_bytes


def _read_everywhere(bootstrap: str, partition_count: int) -> None:
    """Read one record at an offset somewhere in a partition, again and again."""
    chance = random.Random(1)
    consumer = clients.committed_consumer(bootstrap, "reads", fetch_wait_max_ms=10)
    try:
        for _ in range(READS):
            number = chance.randrange(partition_count)
            place = TopicPartition(f"filled-{number // PARTITIONS_PER_TOPIC}", number % PARTITIONS_PER_TOPIC)
            low, high = consumer.get_watermark_offsets(place, TIMEOUT_S)
            place.offset = chance.randrange(low, high)
            consumer.assign([place])
            message = consumer.poll(TIMEOUT_S)
            assert message is not None
            assert message.error() is None
            assert message.offset() == place.offset
    finally:
        consumer.close()


if __name__ == "__main__":
    sys.exit(main())
