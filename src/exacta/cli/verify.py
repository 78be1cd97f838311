"""`exacta verify`: its options. `exacta.verify` does the work."""

import logging
import secrets
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from exacta.cli.cluster import EXIT_NO, EXIT_USAGE, CommandConfig, by_file, cluster_of, fail, notes_of_client
from exacta.cli.progress import working
from exacta.extras import install_extra

if TYPE_CHECKING:
    from exacta.client.security import Cluster
    from exacta.verify.analysis.verdict import Verdict
    from exacta.verify.campaign.settings import CampaignSettings
    from exacta.verify.history import Workload

_EXIT_TERMINATED = 128 + signal.SIGTERM
_PAGE = "report.html"


# --- the options ------------------------------------------------------------------------------------------------------

_AnyServers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,…",
        help="The cluster, an Exacta or any Kafka.",
        show_default=False,
    ),
]
_PulsarUrl = Annotated[
    str | None,
    typer.Option(
        "--pulsar-url",
        metavar="pulsar://HOST:PORT",
        help="An Exacta's address for Pulsar's clients, which then take part: they write into the same topics, share "
        "transactions with Kafka's, and read.",
        show_default=False,
    ),
]
_Workloads = Annotated[
    list[str] | None,
    typer.Option(
        metavar="append|transfer|etl",
        help="What the clients do; may be repeated. All of them together unless it is given.",
        show_default=False,
    ),
]
_Duration = Annotated[float, typer.Option(metavar="SECONDS", min=1, help="How long the clients run.")]
_Producers = Annotated[int, typer.Option(min=1, help="How many producers each workload has.")]
_Rate = Annotated[float, typer.Option(min=0.1, help="Transactions a second of each producer, at most.")]
_Partitions = Annotated[int, typer.Option(min=2, help="Partitions of each topic.")]
_ReplicationFactor = Annotated[int, typer.Option(help="Of the topics; -1: the cluster's default.")]
_TransactionBuffer = Annotated[
    str | None,
    typer.Option(
        metavar="marker|sidecar",
        help="The topics' transaction.buffer, on an Exacta. On sidecar topics transactions must lie whole, in the "
        "order of their commits, and what every Kafka is allowed is an anomaly.",
        show_default=False,
    ),
]
_RestartCommand = Annotated[
    str | None,
    typer.Option(metavar="COMMAND", help="A shell command that restarts a broker.", show_default=False),
]
_Kill = Annotated[
    str | None,
    typer.Option(
        metavar="PID|FILE",
        help="Kill -9 this process, or the one whose id is in the file, before the restart command.",
        show_default=False,
    ),
]
_RestartEvery = Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Mean time between two of these.")]
_KillClientsEvery = Annotated[
    float, typer.Option(metavar="SECONDS", min=0, help="Mean time between two kills of a client; 0: none.")
]
_Seed = Annotated[int | None, typer.Option(help="Draw again what an earlier run drew.", show_default=False)]
_Output = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="A new directory for history and report; exacta-verify-SEED unless it is given.",
        show_default=False,
    ),
]
_KeepTopics = Annotated[bool, typer.Option("--keep-topics", help="Do not delete the topics at the end.")]
_Strict = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND",
        help="Count as an anomaly what every Kafka is allowed: g0, g1c-by-writes, partly-visible. May be repeated.",
        show_default=False,
    ),
]
_Analyze = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Run nothing: analyse this history again.", show_default=False),
]


def verify(
    bootstrap_servers: _AnyServers = None,
    command_config: CommandConfig = None,
    pulsar_url: _PulsarUrl = None,
    workload: _Workloads = None,
    duration: _Duration = 60,
    producers: _Producers = 2,
    rate: _Rate = 10,
    partitions: _Partitions = 3,
    replication_factor: _ReplicationFactor = -1,
    transaction_buffer: _TransactionBuffer = None,
    restart_command: _RestartCommand = None,
    kill: _Kill = None,
    restart_every: _RestartEvery = 20,
    kill_clients_every: _KillClientsEvery = 5,
    seed: _Seed = None,
    output: _Output = None,
    keep_topics: _KeepTopics = False,
    strict: _Strict = None,
    analyze: _Analyze = None,
) -> None:
    """Check that a cluster, an Exacta or any Kafka, keeps under faults what Kafka's exactly-once promises.

    Producers write in transactions, commit, abort, are fenced and killed; groups transform; readers watch. What they do
    and see is analysed in the manner of Jepsen's checker for Kafka. Topics are made, and deleted again.

    Exit code 0 if nothing was found, 1 if something was, or if something could not be checked, 2 if called wrongly.
    """
    from exacta.verify.campaign.settings import CampaignSettings
    from exacta.verify.history import HistoryError

    if (analyze is None) == (bootstrap_servers is None):
        fail("give one of --bootstrap-server and --analyze", EXIT_USAGE)
    kinds, page = _kinds(strict or []), Path(_PAGE) if analyze is None else analyze.with_suffix(".html")
    try:
        if analyze is None:
            _check_clients(pulsar_url)
            seed = secrets.randbelow(1_000_000) if seed is None else seed
            settings = CampaignSettings(
                workloads=_workloads(workload or []),
                pulsar_url=pulsar_url or "",
                seed=seed,
                directory=_new_directory(output or Path(f"exacta-verify-{seed}")),
                duration_s=duration,
                producers=producers,
                rate=rate,
                partitions=partitions,
                replication_factor=replication_factor,
                transaction_buffer=_transaction_buffer(transaction_buffer or ""),
                restart_command=restart_command,
                kill=_process(kill),
                restart_every_s=restart_every,
                kill_clients_every_s=kill_clients_every,
                keep_topics=keep_topics,
            )
            page = settings.directory / page
            analyze = _run(cluster_of(bootstrap_servers or "", command_config, "exacta-verify"), settings)
        _show(_analyse(analyze, kinds), analyze, page)
    except HistoryError as error:
        fail(str(error), EXIT_NO)


def _check_clients(pulsar_url: str | None) -> None:
    """End the command if the clients that are to take part are not there."""
    if find_spec("confluent_kafka") is None:
        fail(f"confluent-kafka is not installed: {install_extra('verify')}", EXIT_USAGE)
    if pulsar_url is None:
        return
    if find_spec("pulsar") is None or find_spec("google") is None or find_spec("google.protobuf") is None:
        fail(f"pulsar-client is not installed: {install_extra('verify-pulsar')}", EXIT_USAGE)
    from exacta.verify.workload.pulsar.side import addresses_of

    try:
        addresses_of(pulsar_url)
    except ValueError as error:
        fail(f"--pulsar-url: {error}", EXIT_USAGE)


def _kinds(names: list[str]) -> "list[str]":
    from exacta.verify.analysis.anomalies import Kind

    known = [kind.title for kind in Kind if kind.information]
    for name in names:
        if name not in known:
            fail(f"--strict: {name} is none of {', '.join(known)}", EXIT_USAGE)
    return names


def _workloads(names: list[str]) -> "tuple[Workload, ...]":
    from exacta.verify.history import Workload

    try:
        return tuple(dict.fromkeys(Workload(each) for each in names)) or tuple(Workload)
    except ValueError:
        fail(f"--workload: expected one of {', '.join(Workload)}", EXIT_USAGE)


def _transaction_buffer(name: str) -> str:
    from exacta.verify.campaign.settings import TRANSACTION_BUFFERS

    if name not in ("", *TRANSACTION_BUFFERS):
        fail(f"--transaction-buffer: expected one of {', '.join(TRANSACTION_BUFFERS)}", EXIT_USAGE)
    return name


def _process(named: str | None) -> str | None:
    """Return what names the process to kill; end the command where it names none."""
    from exacta.verify.campaign.faults import process_id

    if named is not None:
        try:
            process_id(named)
        except (OSError, ValueError) as error:
            fail(f"--kill: {error}", EXIT_USAGE)
    return named


def _new_directory(directory: Path) -> Path:
    """Return a directory that is empty or still to be made; end the command where it is neither."""
    try:
        if directory.exists() and any(directory.iterdir()):
            fail(f"--output: {directory} is not empty", EXIT_USAGE)
    except OSError as error:
        fail(f"--output: {directory} cannot be used: {error.strerror}", EXIT_USAGE)
    return directory


def _run(cluster: "Cluster", settings: "CampaignSettings") -> Path:
    from exacta import __version__
    from exacta.client.errors import ClientError
    from exacta.verify.campaign.run import Campaign
    from exacta.verify.campaign.settings import CampaignError

    # A polite end of this process ends the processes that it has started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_EXIT_TERMINATED))
    try:
        campaign = Campaign(cluster, settings, __version__, lambda text: typer.echo(text, err=True))
        with notes_of_client():
            campaign.meet()
        # From now on it is this command that makes the cluster go away; it says so itself.
        logging.getLogger("exacta.client").addHandler(logging.NullHandler())
        typer.echo(f"seed {settings.seed}; history and logs in {settings.directory}", err=True)
        return campaign.run()
    except (CampaignError, ClientError) as error:
        fail(by_file(error), EXIT_NO)


def _analyse(history: Path, strict: list[str]) -> "Verdict":
    from exacta.verify.analysis.anomalies import Kind
    from exacta.verify.analysis.verdict import analyse
    from exacta.verify.history_file import read_history

    with working("analysing the history"):
        return analyse(read_history(history), strict=[kind for kind in Kind if kind.title in strict])


def _show(verdict: "Verdict", history: Path, page: Path) -> NoReturn:
    """Print the verdict, write the page, and end the command."""
    from rich.console import Console

    from exacta.verify.history_file import read_history
    from exacta.verify.report.page import render
    from exacta.verify.report.terminal import show

    show(verdict, Console())
    try:
        page.write_text(render(verdict, lambda: read_history(history)))
    except OSError as error:
        fail(f"{page} cannot be written: {error.strerror}", EXIT_NO)
    typer.echo(f"report: {page}; again: exacta verify --analyze {history}", err=True)
    raise typer.Exit(0 if verdict.passed else EXIT_NO)
