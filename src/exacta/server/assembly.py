"""The one place where a journal, an engine and a broker are put together.

The server, the simulation, the benchmarks and the tests assemble their brokers here, each over a journal, a scheduler
and a clock of its own; so what they run is the same broker.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from exacta.adapters.entropy import SystemEntropy
from exacta.config.configuration import Configuration
from exacta.config.retention import retention_rules
from exacta.core.values.limits import Limits
from exacta.engine.engine import Engine, EngineFailed
from exacta.engine.recovery import Recovered
from exacta.engine.snapshot_schedule import FOLD_EVERY_MS
from exacta.engine.upkeep import Schedule
from exacta.front.broker import Broker
from exacta.front.memory import Memory
from exacta.ports.authorizer import Authorizer
from exacta.ports.cluster import Cluster
from exacta.ports.entropy import Entropy
from exacta.ports.journal import Journal
from exacta.ports.log import Log
from exacta.ports.record_format import RecordFormat
from exacta.ports.scheduler import Scheduler
from exacta.records.compaction import compaction
from exacta.records.record_format import KafkaRecordFormat
from exacta.security.authorizer import authorizer_of
from exacta.security.logins import Logins

E = TypeVar("E", bound=Engine)


def upkeep_schedule(
    configuration: Configuration,
    *,
    record_clock: Callable[[], int] | None = None,
    now: Callable[[], Configuration] | None = None,
) -> Schedule:
    """Return the upkeep of the log as the configuration wants it: retention, compaction, the freeing of space.

    `now` returns the configuration by which records are kept at that moment; None: it is always this one.
    """
    return Schedule(
        rules=retention_rules(now or (lambda: configuration)),
        rewriter=compaction,
        record_clock=record_clock,
        check_interval_ms=configuration.log_retention_check_interval_ms,
        clean_interval_ms=configuration.log_cleaner_backoff_ms,
        backlog_interval_ms=configuration.pulsar_backlog_check_interval_ms,
    )


def assemble_engine(
    journal: Journal,
    scheduler: Scheduler,
    *,
    clock: Callable[[], int],
    wait_clock: Callable[[], int] | None = None,
    limits: Limits,
    on_failure: Callable[[EngineFailed], None],
    schedule: Schedule | None = None,
    fold_every_ms: int = FOLD_EVERY_MS,
    records: RecordFormat | None = None,
    make: Callable[..., E] = Engine,  # type: ignore[assignment]
    recovered: Recovered | None = None,
    node_id: int = 0,
) -> E:
    """Recover an engine from the journal. Blocks; raises what `Engine` raises.

    `make` is the engine's class, or a partial of a subclass; `records` is the format of record batches, Kafka's by
    default. Without a `schedule` all records are kept for ever. `recovered` is the state, where the journal has been
    read already. `node_id` takes the lead where others may append to the journal.
    """
    return make(
        journal,
        KafkaRecordFormat() if records is None else records,
        scheduler=scheduler,
        clock=clock,
        wait_clock=wait_clock,
        limits=limits,
        on_failure=on_failure,
        schedule=schedule,
        fold_every_ms=fold_every_ms,
        recovered=recovered,
        node_id=node_id,
    )


def assemble_broker(
    engine: Log,
    configuration: Configuration,
    *,
    cluster_id: str,
    cluster: Cluster | None = None,
    log_dir: Path | None = None,
    wall_clock: Callable[[], int] | None = None,
    entropy: Entropy | None = None,
    authorizer: Authorizer | None = None,
    logins: Logins | None = None,
    memory: Memory | None = None,
) -> Broker:
    """Return the facade of the engine for the handlers of all fronts.

    `entropy` is the operating system's by default, and the `authorizer` is what the configuration asks for. Without a
    `log_dir` the broker lies in memory; without a `wall_clock` the engine's time is also the time of records. The
    `memory` has threads and a clock, those of the machine by default.
    """
    return Broker(
        engine,
        configuration,
        SystemEntropy() if entropy is None else entropy,
        Memory(configuration, engine.scheduler) if memory is None else memory,
        authorizer_of(configuration, engine.advice) if authorizer is None else authorizer,
        logins=logins,
        cluster_id=cluster_id,
        cluster=cluster,
        log_dir=log_dir,
        wall_clock=wall_clock,
    )
