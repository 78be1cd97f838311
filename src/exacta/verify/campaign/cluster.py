"""The campaign's own calls to the cluster: topics, offsets, and the last takeover of every transactional id."""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from exacta.client.errors import ClientError, KafkaError
from exacta.client.group_administration import delete_group
from exacta.client.group_offsets import fetch_offsets
from exacta.client.routing import Client, UnknownTopic
from exacta.client.security import Cluster
from exacta.client.topics import LATEST, READ_COMMITTED, READ_UNCOMMITTED, create_topic, list_offsets
from exacta.client.transactions import TopicPartition, init_producer_id
from exacta.client.trials import try_deleting_group, try_group, try_topic, try_transactional_id
from exacta.protocol.kafka.errors import ErrorCode
from exacta.verify.campaign.settings import CampaignError, CampaignSettings
from exacta.verify.history import GroupOffsets, Init, Outcome, Watermarks

PROBE_MS = 15_000
RETURN_MS = 120_000
KEEP_ALL = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
"""The settings of the topics. Records that the cluster deletes by its defaults would look lost."""
_LISTING_MS = 2_000
_STABLE_WITHIN_S = 30.0
_LOOK_AGAIN_S = 0.1
_TAKEOVER_TIMEOUT_MS = 10_000
_DELETE_S = 30.0
_MEMBERS_GONE_WITHIN_S = 30.0


class Watcher:
    """A client of the cluster that looks from outside; each thread takes its own."""

    def __init__(self, cluster: Cluster, epoch_ns: int) -> None:
        self._client = Client(cluster, call_timeout_ms=RETURN_MS)
        self._epoch_ns = epoch_ns

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def now_us(self) -> int:
        """Return the time since the run began."""
        return (time.monotonic_ns() - self._epoch_ns) // 1000

    def answers(self, timeout_ms: float = RETURN_MS) -> None:
        """Wait until the cluster answers; raises `ClientError`."""
        self._client.nodes(self._client.deadline(timeout_ms))

    def create(self, topics: Mapping[str, int], settings: CampaignSettings) -> None:
        """Make the topics; raises `ClientError`."""
        buffer = {"transaction.buffer": settings.transaction_buffer} if settings.transaction_buffer else {}
        for topic, partitions in topics.items():
            create_topic(
                self._client,
                topic,
                partitions=partitions,
                replication_factor=settings.replication_factor,
                configs=KEEP_ALL | buffer,
            )
        deadline = time.monotonic() + RETURN_MS / 1000
        while True:  # a topic that was just created may be unknown to some brokers for a moment
            try:
                self._client.partitions(topics)
                return
            except UnknownTopic:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_LOOK_AGAIN_S)

    def try_rights(self, topics: Iterable[str], group: str | None, prefix: str) -> None:
        """Try what the clients will do: without a right they would fail each by itself. Raises `ClientError`."""
        for topic in topics:
            try_topic(self._client, topic, ("Read", "Write", "Delete"))
        trial = f"{prefix}-trial"
        try_transactional_id(self._client, trial)
        if group is not None:
            try_group(self._client, trial)
            try_deleting_group(self._client, trial)

    def watermarks(self, topics: Mapping[str, int], *, final: bool = False) -> Watermarks:
        """List last stable offsets, and then high watermarks; raises `ClientError`."""
        places = [TopicPartition(topic, partition) for topic, count in topics.items() for partition in range(count)]
        deadline_ms = RETURN_MS if final else _LISTING_MS
        start_us = self.now_us()
        found = [
            list_offsets(
                self._client, places, LATEST, isolation_level=level, deadline=self._client.deadline(deadline_ms)
            )
            for level in (READ_COMMITTED, READ_UNCOMMITTED)
        ]
        marks = [(place.topic, place.partition, found[0][place], found[1][place]) for place in places]
        return Watermarks(start_us=start_us, end_us=self.now_us(), partitions=marks, final=final)

    def settled(self, topics: Mapping[str, int]) -> Watermarks:
        """List the offsets when nothing is open any more, or when that has been waited for in vain."""
        deadline_s = time.monotonic() + _STABLE_WITHIN_S
        while True:
            found = self.watermarks(topics, final=True)
            if all(stable == high for _, _, stable, high in found.partitions) or time.monotonic() > deadline_s:
                return found
            time.sleep(_LOOK_AGAIN_S)

    def take_over(self, transactional_id: str) -> Init:
        """Take a transactional id, so that nothing of it is open; raises `ClientError`."""
        start_us = self.now_us()
        init_producer_id(self._client, transactional_id, transaction_timeout_ms=_TAKEOVER_TIMEOUT_MS)
        return Init(
            process="final",
            producer=f"final of {transactional_id}",
            transactional_id=transactional_id,
            start_us=start_us,
            end_us=self.now_us(),
            outcome=Outcome.OK,
        )

    def group_offsets(self, group: str) -> GroupOffsets:
        """Return the offsets that a group has committed; raises `ClientError`."""
        found = fetch_offsets(self._client, group, stable=True)
        return GroupOffsets(
            group=group, partitions=[(place.topic, place.partition, entry.offset) for place, entry in found.items()]
        )

    def delete(self, topics: Iterable[str], group: str | None, settings: Mapping[str, str]) -> None:
        """Delete what the run has made; raises `CampaignError`."""
        try:
            # Nothing in `client/` deletes topics, for nothing of the product does.
            admin = AdminClient({**settings, "error_cb": lambda error: None, "log_level": 0})
            for deleted in admin.delete_topics(list(topics)).values():
                self._have_deleted(deleted)
            if group is not None:
                self._delete_group(group)
        except (KafkaException, ClientError) as error:
            raise CampaignError(f"the topics of this run could not be deleted: {error}") from error

    @staticmethod
    def _have_deleted(deleted: Future[None]) -> None:
        try:
            deleted.result(_DELETE_S)
        except KafkaException as error:
            if error.args[0].code() != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # it was never made
                raise

    def _delete_group(self, group: str) -> None:
        """Delete a group when the members that were killed have timed out."""
        deadline_s = time.monotonic() + _MEMBERS_GONE_WITHIN_S
        while True:
            try:
                delete_group(self._client, group)
                return
            except KafkaError as error:
                if error.code != ErrorCode.NON_EMPTY_GROUP or time.monotonic() > deadline_s:
                    raise
                time.sleep(_LOOK_AGAIN_S)
