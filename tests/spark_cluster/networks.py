"""A network of its own for each worker, where this machine lets us make some: by `ip`, as root, on Linux.

Owns a bridge and a network namespace behind it for each worker, for as long as the context lasts. Master, drivers and
broker are on this side. So nothing of a worker can be reached by the loopback, as on machines of their own.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from types import TracebackType


class NoNetworks(Exception):
    """This machine does not let us; the text says why."""


class Networks:
    """The bridge and the namespaces; raises NoNetworks on entering."""

    def __init__(self, workers: int) -> None:
        """Choose names and addresses; nothing is made yet."""
        number = os.getpid() % 100_000
        subnet = f"10.213.{number % 250}"
        self.host = f"{subnet}.1"
        self._bridge = f"exacta{number}"
        self._names = {f"{subnet}.{10 + worker}": f"exacta{number}w{worker}" for worker in range(workers)}

    @property
    def worker_hosts(self) -> tuple[str, ...]:
        """The workers' addresses."""
        return tuple(self._names)

    def __enter__(self) -> Networks:
        """Make them all."""
        try:
            _ip("link", "add", self._bridge, "type", "bridge")
            _ip("address", "add", f"{self.host}/24", "dev", self._bridge)
            _ip("link", "set", self._bridge, "up")
            for address, name in self._names.items():
                _ip("netns", "add", name)
                _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
                _ip("link", "set", name, "master", self._bridge, "up")
                _ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
                for device in ("lo", "eth0"):
                    _ip("-n", name, "link", "set", device, "up")
        except NoNetworks:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove them all; what still runs in one keeps it until it ends."""
        self._remove()

    def inside(self, address: str) -> list[str]:
        """Return what to put before a command that is to run where a worker's address is."""
        return ["ip", "netns", "exec", self._names[address]]

    def _remove(self) -> None:
        with suppress(NoNetworks):
            for name in self._names.values():
                with suppress(NoNetworks):
                    _ip("netns", "delete", name)
            _ip("link", "delete", self._bridge)


def _ip(*arguments: str) -> None:
    try:
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=30, check=False)
    except OSError as error:
        raise NoNetworks(str(error)) from error
    if done.returncode != 0:
        raise NoNetworks(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
