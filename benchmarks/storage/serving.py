"""A server on a data directory that outlives it."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.brokers import HOST, Broker
from benchmarks.processes import free_ports, serving

CACHE = Path(__file__).resolve().parents[2] / ".cache"


@contextmanager
def served(data: Path, log: Path, options: Mapping[str, object] | None = None) -> Iterator[Broker]:
    """Run `exacta serve` with these options; it may not listen yet."""
    bootstrap = f"{HOST}:{free_ports(1)[0]}"
    program = str(Path(sys.executable).with_name("exacta"))
    settings = [argument for name, value in (options or {}).items() for argument in ("--set", f"{name}={value}")]
    command = [program, "serve", "--data", str(data), "--listen", bootstrap, *settings]
    with serving(command, log) as server:
        yield Broker(bootstrap=bootstrap, process=server.process, server=server)
