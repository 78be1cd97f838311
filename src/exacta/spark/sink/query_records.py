"""Read and write what the cluster remembers of a query: its decision record and its tasks' replay markers.

The module owns where they lie (offsets of groups, on one partition) and how they are read so that the answer is final.
`decision.py` owns the form of a record, and `protocol.py` owns what follows from it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from exacta.client.deadline import Backoff, Deadline
from exacta.client.errors import KafkaError
from exacta.client.group_offsets import fetch_offset, fetch_offsets, fetch_stable_offsets
from exacta.client.routing import Client
from exacta.client.transactions import CommittedOffset, Producer, TopicPartition, commit_offset
from exacta.protocol.kafka.errors import ErrorCode
from exacta.spark.sink import decision as record
from exacta.spark.sink.decision import Decision
from exacta.spark.sink.names import QueryNames


class Heads(NamedTuple):
    """The first pieces of a query's decision records."""

    by_partition: dict[TopicPartition, CommittedOffset]  # there is one, or none
    pending: bool  # a transaction may yet change it


class QueryRecords:
    """The records of one query, on partition `at`."""

    def __init__(self, client: Client, names: QueryNames, at: TopicPartition) -> None:
        self._client = client
        self._names = names
        self._at = at

    def heads(self) -> Heads:
        """Return the first pieces of decision records as they are now."""
        group = self._names.decision_group(0)
        try:
            found = fetch_offsets(self._client, group, stable=True, wait=False)
            if self._at not in found:
                # Asked for all partitions, Apache Kafka says nothing of one whose first offset is pending.
                fetch_offset(self._client, group, self._at, stable=True)
            elif (pieces := record.pieces_of(found[self._at].metadata)) > 1:
                further = [self._names.decision_group(piece) for piece in range(1, pieces)]
                stable = fetch_stable_offsets(self._client, further, self._at)
                return Heads(found, pending=len(stable) < len(further))
        except KafkaError as error:
            if error.code != ErrorCode.UNSTABLE_OFFSET_COMMIT:
                raise
            return Heads(fetch_offsets(self._client, group), pending=True)
        return Heads(found, pending=False)

    def decision(self) -> Decision | None:
        """Return the last decision of the query, or None; waits until it is final."""
        deadline = self._client.deadline()
        first = self._final_offset(self._names.decision_group(0), deadline)
        if first is None:
            return None
        pieces = [first.metadata]
        for piece in range(1, record.pieces_of(first.metadata)):
            further = self._final_offset(self._names.decision_group(piece), deadline)
            if further is None or further.offset != first.offset:
                raise record.UnreadableDecision(
                    f"piece {piece} of the decision record of batch {first.offset} is missing"
                )
            pieces.append(further.metadata)
        return record.unpack(first.offset, pieces)

    def put_decision(self, driver: Producer, decision: Decision) -> None:
        """Put a decision into the driver's open transaction; it counts when that commits."""
        for piece, text in enumerate(record.pack(decision)):
            group = self._names.decision_group(piece)
            commit_offset(self._client, driver, group, self._at, CommittedOffset(decision.offset, text))

    def pending_markers(self, tasks: Iterable[int]) -> list[int]:
        """Return those tasks whose marker a transaction may yet change."""
        groups = {self._names.marker_group(task): task for task in tasks}
        stable = fetch_stable_offsets(self._client, list(groups), self._at)
        return [task for group, task in groups.items() if group not in stable]

    def committed_tasks(self, decision: Decision) -> set[int]:
        """Return the tasks of a decision whose marker says, stably, that they are committed."""
        groups = {self._names.marker_group(entry.task): entry.task for entry in decision.entries}
        found = fetch_stable_offsets(self._client, list(groups), self._at)
        return {
            groups[group]
            for group, offset in found.items()
            if offset is not None and offset.offset >= decision.batch_id
        }

    def marker_reached(self, task: int, batch_id: int) -> bool:
        """Return whether a task's rows of a batch are committed, waiting until no transaction can change the answer."""
        marker = self._final_offset(self._names.marker_group(task), self._client.deadline())
        return marker is not None and marker.offset >= batch_id

    def _final_offset(self, group: str, deadline: Deadline) -> CommittedOffset | None:
        """Return what a group committed, or None, waiting until no open transaction can change it."""
        backoff = Backoff()
        while True:
            try:
                return fetch_offset(self._client, group, self._at, stable=True, deadline=deadline)
            except KafkaError as error:
                if error.code != ErrorCode.UNSTABLE_OFFSET_COMMIT:
                    raise
                backoff.wait(deadline, error)
