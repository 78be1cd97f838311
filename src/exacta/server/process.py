"""The process of `exacta serve`: its signals, its limits, its exit code."""

import asyncio
import contextlib
import gc
import logging
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from exacta.adapters.local.space.reserve import WHOLE_BYTES
from exacta.config.configuration import Configuration
from exacta.config.dynamic import text_of
from exacta.config.errors import ConfigurationError
from exacta.config.options import changed
from exacta.front.doors import Door
from exacta.posix import resource
from exacta.release import release
from exacta.server.advice import is_about_a_full_disk, with_advice
from exacta.server.errors import ServerError
from exacta.server.event_loop import new_event_loop
from exacta.server.free_space import FreeSpaceAlarm
from exacta.server.identity import refuse_all_but_a_cache, refuse_foreign
from exacta.server.log_lines import DEFAULT_FORMAT, DEFAULT_LEVEL, Flood, configure_logging, never, set_level
from exacta.server.open_files import files_allowed
from exacta.server.run_time_options import drop_options_set_at_run_time
from exacta.server.seams import Seams
from exacta.server.server import Server
from exacta.server.service_manager import READY, STOPPING, notify
from exacta.server.signals import heed

if TYPE_CHECKING:
    from exacta.server.cluster.server import ClusterServer

logger = logging.getLogger("exacta.server")

_FEW_FILES = 4096
EXIT_FAILED = 1
EXIT_DISK_FULL = 3
"""Another start would end in the same way, until somebody makes room: no supervisor should try one."""
_OLDEST_GENERATION = 2
_SWITCH_INTERVAL_SECONDS = 0.0005
"""The journal's thread gets the interpreter so soon after a sync; Python's own 5 ms would be the latency."""


def serve(
    configuration: Configuration,
    data: Path,
    doors: Sequence[Door],
    *,
    log_level: str = DEFAULT_LEVEL,
    log_format: str = DEFAULT_FORMAT,
    drops_run_time_options: bool = False,
    level_now: Callable[[], str] | None = None,
) -> int:
    """Run until a signal ends it (`signals.py`); return the process's exit code.

    Says where it listens in one line on stdout. `drops_run_time_options` takes back what was set while brokers ran.
    `level_now` gives the log's level as the files say it now; it raises ConfigurationError where they are of no use.
    """
    flood = configure_logging(log_level, log_format)
    sys.setswitchinterval(_SWITCH_INTERVAL_SECONDS)
    allow_many_files(configuration)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        try:
            level = level_now or (lambda: log_level)
            return runner.run(_serve(configuration, data, doors, flood, level, drops_run_time_options))
        except ServerError as error:
            if log_format == "text":
                sys.stderr.write(f"exacta: {error}\n")
            else:
                logger.critical("%(reason)s", {"reason": str(error)})
            return EXIT_DISK_FULL if is_about_a_full_disk(str(error)) else EXIT_FAILED
        finally:
            flood.later = never  # the loop ends
            flood.tell()


def _freeze_what_stays(phase: str, found: dict[str, int]) -> None:
    """Take what has outlived a full collection out of the next ones.

    The state of a hundred thousand partitions would keep the event loop for 150 ms each time. It is no garbage: what
    leaves the state is freed when the last reference to it goes.
    """
    if phase == "stop" and found["generation"] == _OLDEST_GENERATION:
        gc.freeze()


def allow_many_files(configuration: Configuration) -> None:
    """Raise the soft limit of file handles to the hard one: each connection has one, and each sealed segment.

    Says so where that is few, or fewer than were asked for.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # where it is unlimited, some systems refuse this many
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    allowed, wanted = files_allowed(), configuration.max_connections
    if allowed < _FEW_FILES or (wanted != Configuration().max_connections and allowed // 2 < wanted):
        logger.warning(
            "only %d files may be open, so at most %d connections: raise the hard limit (ulimit -Hn, or LimitNOFILE= "
            "of a systemd unit) to twice the connections that there may be",
            allowed,
            min(allowed // 2, wanted),
        )


def _tell_of_start(configuration: Configuration, data: Path) -> None:
    settings = [f"{name}={text_of(value)}" for name, value in changed(configuration).items()]
    logger.info(
        "exacta %(version)s begins: pid %(pid)d, data in %(data)s, %(settings)s",
        {
            "version": release(),
            "pid": os.getpid(),
            "data": str(data.absolute()),
            "settings": ", ".join(settings) or "all options at defaults",
        },
    )


def _read_again(server: "Server | ClusterServer", level_now: Callable[[], str]) -> None:
    """Read the files of the certificates and the level of the log again."""
    server.read_certificates_again()
    try:
        level = level_now()
    except ConfigurationError as error:
        logger.warning("the level of the log stays: %(reason)s", {"reason": str(error)})
        return
    set_level(level)
    logger.info("the level of the log was read again: it is %(level)s", {"level": level})


def _made(
    loop: asyncio.AbstractEventLoop, configuration: Configuration, data: Path, doors: Sequence[Door]
) -> "Server | ClusterServer":
    """Return the server of a broker alone, or of one of a cluster. Raises ServerError."""
    begins = partial(_tell_of_start, configuration, data)
    if not configuration.postgres:
        refuse_foreign(data)
        return Server(loop, configuration, data, doors, Seams(reserve_bytes=WHOLE_BYTES), begins=begins)
    from exacta.server.cluster.server import ClusterServer  # a broker alone does not load it

    refuse_all_but_a_cache(data)
    return ClusterServer(loop, configuration, data, doors, begins=begins)


async def _serve(
    configuration: Configuration,
    data: Path,
    doors: Sequence[Door],
    flood: Flood,
    level_now: Callable[[], str],
    drops_run_time_options: bool,
) -> int:
    loop = asyncio.get_running_loop()
    flood.later = lambda seconds, tell: loop.call_soon_threadsafe(loop.call_later, seconds, tell)
    server = _made(loop, configuration, data, doors)
    await server.open_in_sight()
    if drops_run_time_options:
        drop_options_set_at_run_time(server.engine)
    await server.start()
    asked = asyncio.Event()
    heed(loop, stop=asked.set, read_again=lambda: _read_again(server, level_now))
    # What is alive now lives as long as the server: collecting garbage need not look at it.
    gc.collect()
    gc.freeze()
    gc.callbacks.append(_freeze_what_stays)
    gc.enable()
    for door in server.reception.open_to_all:
        logger.warning(
            "other machines reach %s on %s, and allow.anonymous lets everybody in: who reaches it can read, write and "
            "delete everything",
            door.name,
            door.endpoint,
        )
    first, *others = server.reception.doors
    sys.stdout.write(f"exacta: listening on {first.endpoint}, data in {data}\n")
    for door in others:
        sys.stdout.write(f"exacta: listening for {server.reception.clients_at(door)} on {door.endpoint}\n")
    if server.first_user is not None:
        sys.stdout.write(
            f"exacta: there is no user yet: exacta users add NAME --first-user-token {server.first_user.file}\n"
        )
    sys.stdout.flush()
    notify(READY)
    listening = ", ".join(str(each.endpoint) for each in (first, *others))
    logger.info("serving clients on %(listening)s", {"listening": listening})
    if not configuration.postgres:  # a cache that is full costs time, and no record
        FreeSpaceAlarm(data.absolute(), configuration.disk_free_alarm_percent, loop.time).start(loop)
    asking = asyncio.ensure_future(asked.wait())
    await asyncio.wait((asking, server.failure), return_when=asyncio.FIRST_COMPLETED)
    if not server.failure.done():
        logger.info("stopping")
        notify(STOPPING)
        await server.stop()
    asking.cancel()
    if server.failure.done():
        server.abandon()
        reason = f"stopped at once, nothing unwritten was acknowledged: {server.failure.result()}"
        raise ServerError(with_advice(reason))
    logger.info("stopped")
    return 0
