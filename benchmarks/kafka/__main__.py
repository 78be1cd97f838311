"""Run Apache Kafka in the foreground until it is interrupted: `python -m benchmarks.kafka [--nodes 3] [key=value ...]`.

With several nodes, lines on standard input end and start single ones: `kill 2` (SIGKILL), `restart 2`.
"""

import argparse
import contextlib
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from benchmarks.kafka.cluster import Cluster
from benchmarks.kafka.distribution import KAFKA_VERSION, KafkaUnavailableError, fetch
from benchmarks.kafka.node import HOST, PLAINTEXT, SECURED_LISTENERS, Node
from benchmarks.processes import ServerFailedError, free_rows

if TYPE_CHECKING:
    from benchmarks.kafka.security import Secured


def main() -> int:
    """Fetch, configure and run what was asked for; data is kept only where --data names a folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kafka", description="Run Apache Kafka.")
    parser.add_argument("--release", default=KAFKA_VERSION, help=f"of Apache Kafka (default: {KAFKA_VERSION})")
    parser.add_argument("--port", type=int, help="first port for clients (default: a free one)")
    parser.add_argument("--data", type=Path, help="folder to keep the data in (default: a temporary one)")
    parser.add_argument("--nodes", type=int, default=1, help="how many nodes; with 3, three replicas of everything")
    parser.add_argument(
        "--secure",
        type=Path,
        metavar="DIR",
        help=f"listeners {', '.join(SECURED_LISTENERS)} too, on the next ports; DIR gets certificates, accounts and "
        "access.json, which says how to connect",
    )
    parser.add_argument(
        "--feature", action="append", default=[], metavar="NAME=LEVEL", help="format with this feature level"
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="properties that override the defaults")
    options = parser.parse_args()
    if wrong := [pair for pair in options.overrides if "=" not in pair]:
        parser.error(f"not key=value: {wrong[0]}")
    try:
        jars = fetch(version=options.release)
        secured = _secured(options.secure) if options.secure else None
        with tempfile.TemporaryDirectory(prefix="kafka-node-") as temporary:
            run = _run_node if options.nodes == 1 else _run_cluster
            return run(options, jars, options.data or Path(temporary), secured)
    except (KafkaUnavailableError, ServerFailedError) as error:
        print(error, file=sys.stderr)
        return 1


def _secured(folder: Path) -> "Secured":
    from benchmarks.kafka.security import Secured  # what makes certificates is needed only for this

    return Secured.at(folder, HOST)


def _run_node(options: argparse.Namespace, jars: Path, folder: Path, secured: "Secured | None") -> int:
    first, controller = options.port or free_rows(1, 1 + len(SECURED_LISTENERS))[0], free_rows(1, 1)[0]
    node = Node(
        jars=jars,
        folder=folder,
        port=first,
        controller_port=controller,
        overrides=options.overrides,
        secured=secured,
        format_arguments=_features(options),
    )
    node.prepare()
    print(f"Apache Kafka {options.release} on {node.bootstrap}; Ctrl-C ends it", flush=True)
    if secured:
        print(f"secured: {secured.write_access(node.listeners)}", flush=True)
    with subprocess.Popen(node.command()) as process:
        # Ctrl-C in a terminal reaches both processes, a supervisor's SIGTERM only this one, which passes it on.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        return process.wait()


def _run_cluster(options: argparse.Namespace, jars: Path, folder: Path, secured: "Secured | None") -> int:
    ended = threading.Event()

    def end(_: int, __: FrameType | None) -> None:
        if ended.is_set():
            return
        ended.set()
        # Also out of a start that takes long.
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    cluster = Cluster(
        folder,
        jars,
        count=options.nodes,
        first_port=options.port,
        secured=secured,
        overrides=options.overrides,
        format_arguments=_features(options),
    )
    with contextlib.suppress(KeyboardInterrupt), cluster:
        print(f"Apache Kafka {options.release} on {cluster.bootstrap}; Ctrl-C ends it", flush=True)
        if secured:
            listeners = {name: cluster.bootstrap_of(name) for name in (PLAINTEXT, *SECURED_LISTENERS)}
            print(f"secured: {secured.write_access(listeners)}", flush=True)
        for line in sys.stdin:
            _obey(cluster, line.split())
        ended.wait()
    return 0


def _obey(cluster: Cluster, words: list[str]) -> None:
    match words:
        case ["kill" | "restart" as verb, number] if number.isdigit() and int(number) in cluster.nodes:
            (cluster.kill if verb == "kill" else cluster.restart)(int(number))
            print(f"running: {' '.join(map(str, sorted(cluster.running)))}", flush=True)
        case []:
            pass
        case _:
            print(f"kill N or restart N, with N from 1 to {len(cluster.nodes)}", flush=True)


def _features(options: argparse.Namespace) -> list[str]:
    return [argument for feature in options.feature for argument in ("--feature", feature)]


if __name__ == "__main__":
    sys.exit(main())
