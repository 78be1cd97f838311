"""List who takes part in a run, the names of topics, group and transactional ids, and what each client is told.

All names begin with `exacta-verify-` and the run's id, so that a run finds nothing of another one.
"""

from collections.abc import Mapping

from exacta.verify.campaign.settings import CampaignSettings
from exacta.verify.history import Isolation, Workload
from exacta.verify.workload.spec import Role, Spec


class Roster:
    """The clients of one run."""

    def __init__(self, settings: CampaignSettings, run: str, client: Mapping[str, str], epoch_ns: int) -> None:
        """Name them; `client` are librdkafka's settings."""
        self.run = run
        self._settings = settings
        self._client = dict(client)
        self._epoch_ns = epoch_ns
        self.prefix = f"exacta-verify-{run}"
        self.group = self.prefix if Workload.ETL in settings.workloads else None

    @property
    def producers(self) -> list[tuple[Role, int]]:
        """Every client with transactions: its role, and its number."""
        found = []
        for workload in self._settings.workloads:
            found += [(Role(workload.value), number) for number in range(self._settings.producers)]
            if workload is Workload.ETL:
                found.append((Role.LOAD, 0))
            if self._settings.pulsar_url:
                found += self._of_pulsar(workload)
        return found

    def _of_pulsar(self, workload: Workload) -> list[tuple[Role, int]]:
        if workload is Workload.ETL:
            return [(Role.LOAD_PULSAR, 0)]
        roles = [Role.APPEND_PULSAR] if workload is Workload.APPEND else [Role.TRANSFER_PULSAR, Role.TRANSFER_JOINT]
        return [(role, number) for role in roles for number in range(self._settings.producers)]

    @property
    def views(self) -> list[Isolation]:
        """Everything that is read, while the clients run and at the end."""
        return [each for each in Isolation if self._settings.pulsar_url or each is not Isolation.PULSAR]

    @property
    def topics(self) -> dict[str, int]:
        """Every topic, and its partitions."""
        return {topic: count for role, _ in self.producers for topic, count in self.written_by(role).items()}

    @property
    def source(self) -> str:
        """Return the topic that etl reads."""
        (source,) = self.written_by(Role.LOAD)
        return source

    def written_by(self, role: Role) -> dict[str, int]:
        """Return what a client of this role writes."""
        name = {
            Role.LOAD: "etl-in",
            Role.LOAD_PULSAR: "etl-in",
            Role.ETL: "etl-out",
            Role.APPEND_PULSAR: "append",
            Role.TRANSFER_PULSAR: "transfer",
            Role.TRANSFER_JOINT: "transfer",
        }.get(role, role.value)
        return {f"{self.prefix}-{name}": max(2, self._settings.partitions)}

    def transactional_id(self, process: str) -> str:
        """Return the id that all incarnations of a process share."""
        return f"{self.prefix}-{process}"

    def spec(self, role: Role, process: str, incarnation: int) -> Spec:
        """Return what a client that runs on is told."""
        return Spec(
            role=role,
            process=process,
            incarnation=incarnation,
            seed=f"{self._settings.seed} {process} {incarnation}",
            epoch_ns=self._epoch_ns,
            client=self._client | {"client.id": f"exacta-verify-{process}"},
            pulsar=self._settings.pulsar_url,
            topics=self.topics if role is Role.READER else self.written_by(role),
            transactional_id=self.transactional_id(process),
            rate=self._settings.rate,
            isolation=Isolation(process.removeprefix("reader-")) if role is Role.READER else Isolation.COMMITTED,
            group=self.group or "",
            source=self.source,
            dawdle_chance=self._settings.dawdle_chance if self._settings.producers > 1 else 0.0,
        )

    def final(self, isolation: Isolation, attempt: int, until: dict[str, list[int]]) -> Spec:
        """Return what a final reader is told."""
        return Spec(
            role=Role.FINAL,
            process=f"final-{isolation.value}" + ("" if attempt == 1 else f"-{attempt}"),
            incarnation=1,
            seed="",
            epoch_ns=self._epoch_ns,
            client=self._client,
            pulsar=self._settings.pulsar_url,
            topics=self.topics,
            isolation=isolation,
            until=until,
        )
