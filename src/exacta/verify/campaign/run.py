"""The course of a run: topics, clients, faults; then the end of everything, and the final read.

Theory of operation. While the clients run, one thread waits for the next fault and one lists offsets. At the end the
clients are told to stop; then every transactional id is taken over once more, so that whatever was open is aborted;
then each partition is read from its first offset to its end in both isolations. The verdict is about what is there
then.
"""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from exacta.client.errors import ClientError
from exacta.client.security import Cluster
from exacta.verify.campaign.cluster import PROBE_MS, Watcher
from exacta.verify.campaign.faults import BrokerFaults, Clock, ClusterFaults
from exacta.verify.campaign.librdkafka import settings_of
from exacta.verify.campaign.processes import ClientProcess
from exacta.verify.campaign.roster import Roster
from exacta.verify.campaign.settings import SIDECAR, CampaignError, CampaignSettings
from exacta.verify.history import FORMAT, NEVER_ENDED, End, Fault, HistoryError, Isolation, Op, Outcome, Run
from exacta.verify.history_file import HistoryWriter
from exacta.verify.workload.spec import Role, Spec

HISTORY = "history.jsonl"
_STOP_WITHIN_S = 90.0
_FINAL_SILENT_S = 180.0
"""No final reader that works waits for so long for something new; how long it takes in all is its own affair."""
_FINAL_LOOK_S = 1.0
_FINAL_ATTEMPTS = 3
_PULSAR_WITHIN_S = 3.0
_LIST_EVERY_S = 0.2
_LOOK_EVERY_S = 0.05
_KILLED_AS_IT_COMMITS = 0.5
_COMMITS_WITHIN_S = 2.0

Say = Callable[[str], None]


class Campaign:
    """One run against one cluster."""

    def __init__(
        self, cluster: Cluster, settings: CampaignSettings, version: str, say: Say, faults: ClusterFaults | None = None
    ) -> None:
        """Prepare; `say` is told what happens, a few words at a time.

        `faults`: what is done to the cluster; by default what the settings say.
        """
        self._cluster = cluster
        self._settings = settings
        self._version = version
        self._say = say
        self._client_settings = settings_of(cluster)
        self._epoch_ns = time.monotonic_ns()
        self._roster = Roster(settings, os.urandom(4).hex(), self._client_settings, self._epoch_ns)
        self._chance = random.Random(settings.seed)
        self._watcher = Watcher(cluster, self._epoch_ns)
        self._broker_faults = faults or BrokerFaults(settings, self._watcher)
        self._clients: dict[str, ClientProcess] = {}
        self._commits: Counter[Role] = Counter()
        self._faults = 0
        self._failed: Exception | None = None
        """The error that ended a thread of this campaign, or None."""
        self._progress = threading.Condition()
        self.path = settings.directory / HISTORY

    @property
    def topics(self) -> Mapping[str, int]:
        """Every topic that the clients write, and its partitions."""
        return self._roster.topics

    @property
    def group(self) -> str | None:
        """The group of the etl workload, if that runs."""
        return self._roster.group

    def meet(self) -> None:
        """Wait until the cluster answers; raises `CampaignError` where it does not, and has left nothing behind."""
        try:
            self._watcher.answers(PROBE_MS)
            if self._settings.pulsar_url:
                _meet_pulsar(self._settings.pulsar_url)
        except (ClientError, CampaignError) as error:
            self._watcher.close()
            raise CampaignError(str(error)) from error

    def run(self) -> Path:
        """Do it all; return the history. Raises `CampaignError`, and `HistoryError` where it cannot be written."""
        self.meet()
        directory = self._settings.directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CampaignError(f"{directory} cannot be made: {error.strerror}") from error
        with HistoryWriter(self.path) as self._history:
            self._history.write(self._header())
            try:
                self._watcher.create(self._roster.topics, self._settings)
                self._watcher.try_rights(self._roster.topics, self._roster.group, self._roster.prefix)
                self._work()
                self._finish()
                self._look_after_clients()
            except ClientError as error:
                raise CampaignError(str(error)) from error
            finally:
                for client in self._clients.values():
                    client.kill()
                self._clear()
        return self.path

    def _clear(self) -> None:
        """Leave nothing on the cluster."""
        try:
            if not self._settings.keep_topics:
                self._watcher.delete(self._roster.topics, self._roster.group, self._client_settings)
        except CampaignError as error:
            self._say(str(error))  # what was found is worth more than that
        finally:
            self._watcher.close()

    def _header(self) -> Run:
        settings = self._settings
        (output,) = self._roster.written_by(Role.ETL)
        return Run(
            format=FORMAT,
            run=self._roster.run,
            version=self._version,
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            cluster=self._cluster.bootstrap,
            seed=settings.seed,
            workloads=list(settings.workloads),
            topics=self._roster.topics,
            etl=None if self._roster.group is None else (self._roster.source, output, self._roster.group),
            options={
                "duration": f"{settings.duration_s:g}",
                "producers": str(settings.producers),
                "rate": f"{settings.rate:g}",
                "restart command": settings.restart_command or "",
                "kill": settings.kill or "",
                "restart every": f"{settings.restart_every_s:g}",
                "kill clients every": f"{settings.kill_clients_every_s:g}",
                "transaction buffer": settings.transaction_buffer,
            },
            pulsar=settings.pulsar_url,
            sidecar=settings.transaction_buffer == SIDECAR,
        )

    # --- clients

    def _start(self, spec: Spec) -> ClientProcess:
        client = ClientProcess(
            spec, self._settings.directory / f"{spec.process}.log", partial(self._receive, spec.role)
        )
        self._clients[spec.process] = client
        return client

    def _receive(self, role: Role, op: Op) -> None:
        try:
            self._history.write(op)
        except HistoryError as error:  # raised where it is looked for: this is a thread of its own
            self._failed = error
        if isinstance(op, End) and op.committing and op.outcome is Outcome.OK:
            with self._progress:
                self._commits[role] += 1
                self._progress.notify_all()

    def _count(self) -> int:
        return self._commits.total()

    # --- the course

    def _work(self) -> None:
        for isolation in self._roster.views:
            self._start(self._roster.spec(Role.READER, f"reader-{isolation.value}", 1))
        for role, number in self._roster.producers:
            self._start(self._roster.spec(role, f"{role.value}-{number}", 1))
        ended = threading.Event()
        lister = threading.Thread(target=self._list_offsets, args=(ended,), daemon=True)
        lister.start()
        try:
            self._disturb(time.monotonic() + self._settings.duration_s, lister)
        finally:
            ended.set()
            lister.join()
        self._say("stopping the clients")
        for client in self._clients.values():
            client.stop()
        deadline_s = time.monotonic() + _STOP_WITHIN_S
        for client in self._clients.values():
            if not client.wait(max(0.0, deadline_s - time.monotonic())):
                self._kill_what_never_ends(client)
        self._clients.clear()

    def _disturb(self, deadline_s: float, lister: threading.Thread) -> None:
        settings = self._settings
        broker = self._broker_faults
        # A draw of its own for each: how long the one takes must not change what the other draws.
        restarts = Clock(
            settings.restart_every_s if broker.possible else 0, random.Random(self._chance.random()), self._count
        )
        kills = Clock(settings.kill_clients_every_s, random.Random(self._chance.random()), self._count)
        victims = random.Random(self._chance.random())
        while time.monotonic() < deadline_s and not self._enough:
            with self._progress:
                self._progress.wait(_LOOK_EVERY_S)
            self._look_after_clients()
            if not lister.is_alive():
                raise CampaignError("the offsets are listed no more, for a reason that stands above")
            if restarts.due:
                for fault in broker.strike():
                    self._note(fault)
                restarts.again()
            if kills.due:
                self._kill_client(victims)
                kills.again()

    @property
    def _enough(self) -> bool:
        most = self._settings.most_commits
        if most is None or self._count() < most or self._faults < self._settings.least_faults:
            return False
        return all(self._commits[role] for role, _ in self._roster.producers)

    def _kill_client(self, victims: random.Random) -> None:
        role, number = victims.choice(self._roster.producers)
        client = self._clients[f"{role.value}-{number}"]
        start_us = self._watcher.now_us()
        if victims.random() < _KILLED_AS_IT_COMMITS:
            client.kill_as_it_commits(_COMMITS_WITHIN_S)
        self._again(client, "client killed", client.spec.process, start_us)

    def _look_after_clients(self) -> None:
        if self._failed is not None:
            raise self._failed
        for client in list(self._clients.values()):
            client.check()
            if signal := client.crashed:
                self._again(client, "client crashed", f"{client.spec.process}, {signal}", self._watcher.now_us())

    def _again(self, client: ClientProcess, kind: str, target: str, start_us: int) -> None:
        """Start a client's next incarnation."""
        client.kill()
        spec = client.spec
        self._start(self._roster.spec(spec.role, spec.process, spec.incarnation + 1))
        self._note(Fault(kind=kind, target=target, start_us=start_us, end_us=self._watcher.now_us()))

    def _note(self, fault: Fault) -> None:
        self._history.write(fault)
        if fault.outcome is Outcome.OK:
            self._faults += 1
        self._say(f"{fault.kind}: {fault.target} {fault.error}".rstrip())

    def _list_offsets(self, ended: threading.Event) -> None:
        watcher = Watcher(self._cluster, self._epoch_ns)
        while not ended.wait(_LIST_EVERY_S):
            try:
                self._history.write(watcher.watermarks(self._roster.topics))
            except ClientError:
                continue  # it is away
        watcher.close()

    def _finish(self) -> None:
        self._say("reading everything")
        for role, number in self._roster.producers:
            if role.has_transactional_id:
                self._history.write(self._watcher.take_over(self._roster.transactional_id(f"{role.value}-{number}")))
        marks = self._watcher.settled(self._roster.topics)
        self._history.write(marks)
        until: dict[str, list[int]] = {topic: [] for topic in self._roster.topics}
        for topic, _, _, high in marks.partitions:
            until[topic].append(high)
        for isolation in self._roster.views:
            self._read_everything(isolation, until)
        if self._roster.group is not None:
            self._history.write(self._watcher.group_offsets(self._roster.group))

    def _read_everything(self, isolation: Isolation, until: dict[str, list[int]]) -> None:
        for attempt in range(1, _FINAL_ATTEMPTS + 1):
            spec = self._roster.final(isolation, attempt, until)
            reader = self._start(spec)
            while not reader.wait(_FINAL_LOOK_S):
                if time.monotonic() - reader.heard_s > _FINAL_SILENT_S:
                    self._kill_what_never_ends(reader)  # the verdict says that nothing was read to its end
                    break
            del self._clients[spec.process]
            if reader.killed or not reader.crashed:
                return

    def _kill_what_never_ends(self, client: ClientProcess) -> None:
        start_us = self._watcher.now_us()
        client.kill()
        target, end_us = client.spec.process, self._watcher.now_us()
        self._note(Fault(kind=NEVER_ENDED, target=target, start_us=start_us, end_us=end_us))


def _meet_pulsar(url: str) -> None:
    """Connect as Pulsar's clients do; raises `CampaignError` where nobody answers so."""
    from exacta.verify.workload.pulsar.side import Lost, Refused, Side  # it needs protobuf

    side = Side(url)
    deadline_s = time.monotonic() + _PULSAR_WITHIN_S
    try:
        while True:
            try:
                side.connect()
                return
            except Lost:  # a broker that begins to lead closes its connections
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(_LOOK_EVERY_S)
    except (Lost, Refused) as error:
        raise CampaignError(f"{url} does not answer Pulsar's clients: {error}") from error
    finally:
        side.close()
