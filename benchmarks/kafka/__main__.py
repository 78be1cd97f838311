"""Run one Apache Kafka node in the foreground until it is interrupted: `python -m benchmarks.kafka [key=value ...]`."""

import argparse
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.kafka.distribution import KAFKA_VERSION, KafkaUnavailableError, fetch
from benchmarks.kafka.node import Node
from benchmarks.processes import free_ports


def main() -> int:
    """Fetch, configure and run the node; its data is kept only where --data names a folder."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kafka", description=f"Run Apache Kafka {KAFKA_VERSION}."
    )
    parser.add_argument("--port", type=int, default=0, help="port for clients (default: a free one)")
    parser.add_argument("--data", type=Path, help="folder to keep the data in (default: a temporary one)")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="properties that override the defaults")
    options = parser.parse_args()
    if wrong := [pair for pair in options.overrides if "=" not in pair]:
        parser.error(f"not key=value: {wrong[0]}")
    try:
        jars = fetch()
        with tempfile.TemporaryDirectory(prefix="kafka-node-") as temporary:
            first, second = free_ports(2)
            folder = options.data or Path(temporary)
            node = Node(
                jars=jars,
                folder=folder,
                port=options.port or first,
                controller_port=second,
                overrides=options.overrides,
            )
            node.prepare()
            print(f"Apache Kafka {KAFKA_VERSION} on {node.bootstrap}; Ctrl-C ends it", flush=True)
            with subprocess.Popen(node.command()) as process:
                # Ctrl-C in a terminal reaches both processes, a supervisor's SIGTERM only this one, which passes it on.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                signal.signal(signal.SIGTERM, lambda *_: process.terminate())
                return process.wait()
    except KafkaUnavailableError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
