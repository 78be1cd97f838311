"""`exacta demo`: its options. `exacta.demo` does the work."""

import secrets
import signal
import sys
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from exacta.cli.cluster import EXIT_USAGE, fail
from exacta.extras import install_extra

_SIGNALLED = 128
"""A shell's exit code for a process that a signal has ended is this and the signal's number."""


ONE_BROKER = "driver=2,broker=2,worker=1"
SEVERAL_BROKERS = "broker=5"
"""The numbers of kills by default; of several brokers the one that leads is killed."""
DEFAULTS = f"({ONE_BROKER} by default, {SEVERAL_BROKERS} of several brokers)"


class Sink(StrEnum):
    """Name a sink: what users type, and the name of its Spark format."""

    EXACTA = "exacta"
    AT_LEAST_ONCE = "at-least-once"


class InputBy(StrEnum):
    """Name the system whose client produces the input."""

    KAFKA = "kafka"
    PULSAR = "pulsar"


def demo(
    sink: Annotated[
        Sink, typer.Option(help="exacta, or a plain producer, to see the duplicates one gets with it.")
    ] = Sink.EXACTA,
    producer: Annotated[
        InputBy, typer.Option(help="Whose client produces the input; Kafka's clients read the output.")
    ] = InputBy.KAFKA,
    brokers: Annotated[
        int,
        typer.Option(min=1, max=9, metavar="N", help="Several share one log in a PostgreSQL that the demo starts."),
    ] = 1,
    seed: Annotated[
        int | None, typer.Option(help="Draw the kills of an earlier run again.", show_default=False)
    ] = None,
    flights: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only the first N of 336,776 flights.", show_default=False)
    ] = None,
    kills: Annotated[
        str | None,
        typer.Option(metavar="WHAT=N,…", help=f"How many of what to kill, or 'none' {DEFAULTS}.", show_default=False),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep logs, checkpoints and data in this new directory.", show_default=False),
    ] = None,
) -> None:
    """Run a Spark pipeline, kill -9 its parts while it works, and count what came out of it.

    Exit code 0 if every row came out exactly once, in order; 1 if not; 2 if the pipeline could not be run to its end.
    """
    _require(brokers, producer)
    from exacta.demo.flights import FlightsMissing
    from exacta.demo.kills import KillsSyntaxError, parse_counts
    from exacta.demo.run import DemoSettings, run
    from exacta.demo.screen import Screen
    from exacta.spark.java import JavaMissing

    for number in (signal.SIGTERM, signal.SIGHUP):  # the processes that it has started are ended, too
        signal.signal(number, lambda number, _: sys.exit(_SIGNALLED + number))
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        fail(f"--keep: {keep} is not an empty directory", EXIT_USAGE)
    try:
        settings = DemoSettings(
            seed=secrets.randbelow(1_000_000) if seed is None else seed,
            sink_format=sink.value,
            kills=parse_counts(kills or (ONE_BROKER if brokers == 1 else SEVERAL_BROKERS)),
            brokers=brokers,
            flights=flights,
            keep=keep,
            by_pulsar=producer is InputBy.PULSAR,
        )
        outcome = run(settings, Screen())
    except KillsSyntaxError as error:
        fail(f"--kills: {error}", EXIT_USAGE)
    except (FlightsMissing, JavaMissing) as error:
        fail(f"could not run: {error}", EXIT_USAGE)
    except KeyboardInterrupt:
        fail("interrupted", _SIGNALLED + signal.SIGINT)
    raise typer.Exit(outcome.value)


def _require(brokers: int, producer: InputBy) -> None:
    """End the command where something is not installed."""
    try:
        import exacta.demo.run

        if brokers > 1 and find_spec("asyncpg") is None:  # the brokers need it, and only their adapter imports it
            raise ModuleNotFoundError(name="asyncpg")
        if producer is InputBy.PULSAR:
            import exacta.demo.pulsar_input
            import exacta.protocol.pulsar.messages_pb2  # noqa: F401  # the broker needs it, too
    except ModuleNotFoundError as error:
        extra = "demo-cluster" if brokers > 1 else "demo" if producer is InputBy.KAFKA else "demo-pulsar"
        fail(f"{error.name} is not installed: {install_extra(extra)}", EXIT_USAGE)
