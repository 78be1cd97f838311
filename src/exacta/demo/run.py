"""The demo from beginning to end.

This module owns the order of things: broker, input, pipeline, kills, end, verdict. The parts are elsewhere.

Theory of operation: everything lives in one work directory. One loop watches Spark's checkpoints, lets the nemesis
strike, and starts again what ended without having been killed, which is told and counted but not forgiven for ever.
A part of the flights is held back while there are kills to come, and fed bit by bit to a pipeline that has read all
there is: a kill needs work to strike. Once both queries have read all flights, the closing event is sent; once the
watermark has passed the last hour, the pipeline is asked to stop. Then the judge reads. Where the pipeline does not
get that far, nothing is judged: rows that were never computed are not lost, and the verdict is that the demo could not
run.
"""

import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import partial
from itertools import islice, pairwise
from pathlib import Path

import msgspec
import pandas as pd
from confluent_kafka import KafkaException
from msgspec import Struct

from exacta.demo import checkpoints, expectation, flights, topics
from exacta.demo.brokers import Brokers
from exacta.demo.flights import FlightsMissing
from exacta.demo.kills import Target, plan
from exacta.demo.nemesis import Nemesis
from exacta.demo.pipeline_names import DELAYS_QUERY, ENRICHED_QUERY, WATERMARK_DAYS
from exacta.demo.postgresql import PostgresqlMissing
from exacta.demo.processes import BrokerProcess, DriverProcess, free_port, spark_environment
from exacta.demo.raw_log import RawLogError, read_transactions
from exacta.demo.records import CLOSING_FLIGHT_ID, AirportHour, EnrichedFlight, Flight
from exacta.demo.screen import Screen
from exacta.demo.verify import Output, OutputVerdict, judge
from exacta.spark.java import JavaMissing

INPUT_TOPIC, ENRICHED_TOPIC, DELAYS_TOPIC = "flights", "flights-enriched", "delays-by-airport-and-hour"
_OUTPUTS = 2
INPUT_PARTITIONS, OUTPUT_PARTITIONS = 2, 3
_HELD_BACK_SHARE = 0.25
_BROKER_READY_WITHIN_S = 20.0
_STALLED_AFTER_S = 300.0
_MOST_RESTARTS = 10
_POLL_EVERY_S = 0.05
_CONTENTS = "logs, checkpoints and the broker's data"
_LOG_LINES, _LOG_WIDTH = 4, 300
_CAUSE = "Caused by: "
_TELLING = re.compile(r"^\S+(Error|Exception): | ERROR |^Caused by: |^exacta: ")


class DemoSettings(Struct, frozen=True, kw_only=True):
    """Say what to run.

    `flights` None: all. `keep` None: a temporary directory, removed if the outcome is yes and nothing has ended by
    itself. `micro_batches`: into about how many of them each query divides the input.
    """

    seed: int
    sink_format: str
    kills: dict[Target, int]
    flights: int | None = None
    keep: Path | None = None
    micro_batches: int = 32
    by_pulsar: bool = False
    """True if a Pulsar client produces the input."""
    brokers: int = 1
    """The number of brokers; several share a log that a PostgreSQL of their own keeps."""


class DemoFailed(Exception):
    """The demo could not be run to its end; the message is for the user."""


class Outcome(Enum):
    """Say how the demo ended; the value is the exit code of `exacta demo`."""

    EXACTLY_ONCE = 0
    NOT_EXACTLY_ONCE = 1
    COULD_NOT_RUN = 2


_FAILURES = (DemoFailed, PostgresqlMissing, topics.LoadFailed, topics.ReadStalled, KafkaException, RawLogError)


def run(settings: DemoSettings, screen: Screen) -> Outcome:
    """Run the demo; return whether the output was exactly once, or that it could not be run to its end.

    The work directory is named where it stays. Raises FlightsMissing and JavaMissing.
    """
    started_at = time.monotonic()
    with _work_directory(settings.keep, screen) as work, screen.copied_to(work / "demo.log"):
        demo = _Demo(settings, screen, work)
        could_not_run: str | None = None
        try:
            with screen:
                demo.run()
        except _FAILURES as failure:
            could_not_run = str(failure)
        finally:
            demo.clean_up()
        faulty = any(not verdict.exactly_once for verdict in demo.verdicts)
        if faulty or could_not_run is None:
            screen.verdicts(demo.verdicts)
        screen.say(demo.summary(time.monotonic() - started_at))
        if faulty or could_not_run or settings.keep or demo.unplanned_restarts:  # why something ended is in its log
            screen.say(f"{_CONTENTS}: {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)
        if could_not_run is not None and not faulty:
            screen.could_not_run(could_not_run)
            return Outcome.COULD_NOT_RUN
        screen.outcome(not faulty)
    return Outcome.NOT_EXACTLY_ONCE if faulty else Outcome.EXACTLY_ONCE


@contextmanager
def _work_directory(keep: Path | None, screen: Screen) -> Iterator[Path]:
    """Make the directory of one run; remove a temporary one if the run is ended from outside or cannot begin."""
    work = (keep or Path(tempfile.mkdtemp(prefix="exacta-demo-"))).resolve()
    try:
        (work / "scratch").mkdir(parents=True, exist_ok=True)
        yield work
    except BaseException as error:
        if keep is None and (not isinstance(error, Exception) or isinstance(error, FlightsMissing | JavaMissing)):
            shutil.rmtree(work, ignore_errors=True)
        else:
            screen.say(f"{_CONTENTS}: {work}")
        raise


def telling(lines: list[str]) -> list[str]:
    """Return the lines of a log that tell why a process ended: errors, and where what caused them was raised."""
    return [
        line
        for before, line in pairwise(["", *lines])
        if _TELLING.search(line) or (before.startswith(_CAUSE) and line.lstrip().startswith("at "))
    ]


class _Demo:
    def __init__(self, settings: DemoSettings, screen: Screen, work: Path) -> None:
        self.verdicts: list[OutputVerdict] = []
        self._settings = settings
        self._screen = screen
        self._work = work
        self._restarts: dict[str, int] = {"pipeline": 0, "broker": 0}
        self._output_gauge: topics.Gauge | None = None
        self._tables = flights.data_directory()
        self._flights = flights.read_flights(self._tables, settings.flights)
        self._unfed = flights.messages(self._flights)
        self._fed = 0
        self._flights_per_batch = max(1, -(-len(self._flights) // settings.micro_batches))
        self._broker = self._make_broker()
        self._driver = DriverProcess(
            self._driver_command(), work / "driver.log", spark_environment(work / "scratch"), directory=work / "scratch"
        )
        self._nemesis = Nemesis(
            plan(settings.seed, settings.kills),
            self._broker,
            self._driver,
            say=lambda text: screen.say(text, "yellow"),
            written=self._count_written,
        )

    def _make_broker(self) -> "BrokerProcess | Brokers":
        count, work, for_pulsar = self._settings.brokers, self._work, self._settings.by_pulsar
        if count == 1:
            return BrokerProcess(work / "broker", free_port(), work / "broker.log", free_port() if for_pulsar else None)
        return Brokers(count, work, for_pulsar=for_pulsar)

    def run(self) -> None:
        """Do everything up to the verdicts."""
        seed = self._settings.seed
        producer = "Pulsar" if self._settings.by_pulsar else "Kafka"
        if self._settings.brokers > 1:
            self._screen.say(f"{self._settings.brokers} brokers share one log, which PostgreSQL keeps")
        self._screen.say(
            f"input by a {producer} client; sink {self._settings.sink_format}; seed {seed} "
            f"(--seed {seed} draws the same kills again)"
        )
        self._broker.start()
        self._wait_for_broker()
        self._load()
        self._driver.start()
        self._screen.say("the pipeline is starting")
        self._run_pipeline()
        if not self._driver.stop():
            self._screen.say("the pipeline did not stop cleanly and was killed", "red")
        self._nemesis.end()
        self._judge()

    def clean_up(self) -> None:
        """End every process that is left."""
        self._nemesis.end()
        if self._output_gauge is not None:
            self._output_gauge.close()
        self._driver.stop(timeout_s=0)
        self._broker.stop()

    @property
    def unplanned_restarts(self) -> dict[str, int]:
        """Return how often each process was started again that had ended by itself."""
        return {name: count for name, count in self._restarts.items() if count}

    def summary(self, seconds: float) -> str:
        """Say in one line what was survived."""
        struck = ", ".join(
            f"{target.value} {count} of {self._settings.kills[target]}"
            for target, count in self._nemesis.struck.items()
        )
        restarts = ", ".join(f"{name} {count}" for name, count in self.unplanned_restarts.items())
        unplanned = f"; stopped by themselves and started again: {restarts}" if restarts else ""
        return f"{seconds:.0f} s; killed -9: {struck}{unplanned}"

    # --- input --------------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        servers = self._broker.bootstrap_servers
        topics.create(servers, [INPUT_TOPIC], INPUT_PARTITIONS)
        topics.create(servers, [ENRICHED_TOPIC, DELAYS_TOPIC], OUTPUT_PARTITIONS)
        self._screen.bar("flights loaded", len(self._flights))
        self._feed(len(self._flights) if self._nemesis.finished else int(len(self._flights) * (1 - _HELD_BACK_SHARE)))

    def _feed(self, count: int) -> None:
        """Load this many more flights, or those that are left."""
        some = list(islice(self._unfed, count))
        self._produce(some, partial(self._screen.advance, "flights loaded"))
        self._fed += len(some)

    def _produce(self, messages: list[flights.Message], advance: Callable[[int], None]) -> None:
        if self._broker.pulsar_url is None:
            topics.load(self._broker.bootstrap_servers, INPUT_TOPIC, messages, advance)
            return
        from exacta.demo import pulsar_input  # its client is not there where nobody asks for it

        pulsar_input.load(self._broker.pulsar_url, INPUT_TOPIC, messages, advance)

    def _close_input(self) -> None:
        """Send the event that moves the watermark past the last hour."""
        beyond = self._flights["scheduled_at"].max() + pd.Timedelta(days=2 * WATERMARK_DAYS)
        event = Flight(flight_id=CLOSING_FLIGHT_ID, scheduled=beyond.strftime("%Y-%m-%dT%H:%M:%SZ"))
        message = flights.Message(key=b"closing", value=msgspec.json.encode(event))
        self._produce([message], lambda _: None)

    # --- the pipeline and its kills -----------------------------------------------------------------------------------

    def _driver_command(self) -> list[str]:
        arguments: dict[str, object] = {
            "bootstrap-servers": self._broker.bootstrap_servers,
            "input-topic": INPUT_TOPIC,
            "enriched-topic": ENRICHED_TOPIC,
            "delays-topic": DELAYS_TOPIC,
            "tables": self._tables,
            "checkpoints": self._work / "checkpoints",
            "scratch": self._work / "scratch",
            "sink-format": self._settings.sink_format,
            "max-offsets-per-trigger": self._flights_per_batch,
        }
        options = [text for name, value in arguments.items() for text in (f"--{name}", str(value))]
        return [sys.executable, "-m", "exacta.demo.pipeline", *options]

    def _run_pipeline(self) -> None:
        total = len(self._flights)
        bars = {ENRICHED_QUERY: "flights enriched", DELAYS_QUERY: "flights counted by hour"}
        for bar in bars.values():
            self._screen.bar(bar, total)
        last_hour = self._flights["scheduled_at"].max().floor("h") + pd.Timedelta(hours=1)
        last_hour_ms = int(last_hour.timestamp() * 1000)
        closed = False
        before: object = None
        moved_at = time.monotonic()
        while True:
            queries = {name: checkpoints.read_progress(self._work / "checkpoints" / name) for name in bars}
            for name, query in queries.items():
                self._screen.move(bars[name], min(total, query.offsets_done), f"batch {query.last_done + 1}")
            read = sum(query.offsets_done for query in queries.values())
            self._nemesis.step(queries, read / (total * len(queries)))
            self._restart_what_ended()
            all_read = all(query.offsets_done >= self._fed for query in queries.values())
            if all_read and not closed and not self._nemesis.broker_is_away:
                if self._fed < total:
                    self._feed(total if self._nemesis.finished else self._flights_per_batch)
                else:
                    self._nemesis.give_up()
                    if self._nemesis.finished:
                        self._close_input()
                        closed = True
            if (
                closed
                and queries[DELAYS_QUERY].watermark_ms >= last_hour_ms
                and queries[ENRICHED_QUERY].offsets_done > total
            ):
                return
            # A pipeline that was just started has the whole time again.
            if (queries, self._driver.process.pid) != before:
                before, moved_at = (queries, self._driver.process.pid), time.monotonic()
            elif time.monotonic() - moved_at > _STALLED_AFTER_S:
                stalled = f"the pipeline has not moved for {_STALLED_AFTER_S:.0f} s"
                self._complain(stalled, self._driver.log)
                raise DemoFailed(stalled)
            time.sleep(_POLL_EVERY_S)

    def _count_written(self) -> int:
        """Count the offsets of both outputs, committed or not; -1 if the broker does not answer."""
        if self._output_gauge is None:
            self._output_gauge = topics.Gauge(self._broker.bootstrap_servers, [ENRICHED_TOPIC, DELAYS_TOPIC])
        return self._output_gauge.offsets()

    def _restart_what_ended(self) -> None:
        if self._driver.exit_code() is not None:
            self._restart("pipeline", self._driver)
        if not self._nemesis.broker_is_away and self._broker.exit_code() is not None:
            self._restart("broker", self._broker)

    def _restart(self, name: str, process: "BrokerProcess | Brokers | DriverProcess") -> None:
        self._restarts[name] += 1
        self._complain(f"the {name} ended by itself with exit code {process.exit_code()}", process.log)
        if self._restarts[name] > _MOST_RESTARTS:
            raise DemoFailed(f"the {name} ended by itself more than {_MOST_RESTARTS} times")
        if isinstance(process, DriverProcess):
            process.kill_survivors()
        process.start()

    def _complain(self, text: str, log: Path) -> None:
        self._screen.say(text, "red")
        lines = log.read_text(errors="replace").splitlines()
        for line in (telling(lines) or lines)[-_LOG_LINES:]:
            self._screen.say(f"  {line[:_LOG_WIDTH]}", "dim")

    def _wait_for_broker(self) -> None:
        if not topics.wait_until_ready(self._broker.bootstrap_servers, _BROKER_READY_WITHIN_S):
            self._complain("the broker does not answer", self._broker.log)
            raise DemoFailed("the broker does not answer")

    # --- the verdict --------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        if self._nemesis.broker_is_away:
            self._broker.start()
        self._wait_for_broker()
        outputs = {
            ENRICHED_TOPIC: Output(
                name="enriched flights",
                row_type=EnrichedFlight,
                identity=lambda row: row.flight_id,
                expected=expectation.enriched_flights(self._flights, self._tables).rows,
                position=lambda row: row.flight_id,
            ),
            DELAYS_TOPIC: Output(
                name="delays by airport and hour",
                row_type=AirportHour,
                identity=lambda row: (row.airport, row.hour),
                expected=expectation.delays_by_airport_and_hour(self._flights).rows,
            ),
        }
        servers = self._broker.bootstrap_servers
        for topic, output in outputs.items():
            bar = f"{output.name} read"
            self._screen.bar(bar, len(output.expected))
            rows = topics.read_committed(servers, topic, partial(self._screen.advance, bar))
            transactions = read_transactions(servers, topic, topics.end_offsets(servers, topic))
            self.verdicts.append(judge(output, rows, transactions))
