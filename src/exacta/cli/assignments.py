"""Say which partitions a reader reads, and for whom it commits: those that were named, or those of a group's member."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from exacta.cli.cluster import EXIT_NO, fail

if TYPE_CHECKING:
    from exacta.client.routing import Client
    from exacta.client.transactions import TopicPartition

_HEARTBEATS_WITHOUT_PARTITIONS = 3
"""Another member gives up partitions at its next heartbeat, and this one hears of that at its own next one."""


class Assignment(Protocol):
    """The partitions of one reader, which may change while it reads."""

    @property
    def is_settled(self) -> bool:
        """Return whether a reader that has no partitions need not wait for some."""

    @property
    def pause_s(self) -> float:
        """Return how long a reader that has nothing to read may wait, in seconds, before it looks again."""

    def partitions(self) -> "frozenset[TopicPartition]":
        """Return the partitions that are to be read now."""

    def read_by_now(self, partitions: "frozenset[TopicPartition]") -> None:
        """Take note that the reader reads these now, and has committed for the others."""

    def committed(self) -> "Mapping[TopicPartition, int]":
        """Return where the group goes on, by partition."""

    def commit(self, offsets: "Mapping[TopicPartition, int]") -> None:
        """Commit the next offset of each partition."""

    def close(self) -> None:
        """Give all partitions back."""


class Named:
    """Partitions that the user named, all of them to the end; a group that is given has no members."""

    is_settled = True
    pause_s = 0.0

    def __init__(self, client: "Client", partitions: "frozenset[TopicPartition]", group: str | None) -> None:
        self._client = client
        self._partitions = partitions
        self._group = group

    def partitions(self) -> "frozenset[TopicPartition]":
        """Return the partitions, always the same."""
        return self._partitions

    def read_by_now(self, partitions: "frozenset[TopicPartition]") -> None:
        """Do nothing: nobody else waits for them."""

    def committed(self) -> "Mapping[TopicPartition, int]":
        """Return where the group goes on, by partition; nothing without a group."""
        return {} if self._group is None else _committed(self._client, self._group)

    def commit(self, offsets: "Mapping[TopicPartition, int]") -> None:
        """Commit for the group if there is one; end the command where it has members."""
        from exacta.client.errors import KafkaError
        from exacta.client.group_offsets import commit_offsets
        from exacta.protocol.kafka.errors import ErrorCode

        if self._group is None:
            return
        try:
            commit_offsets(self._client, self._group, offsets)
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_MEMBER_ID:
                raise
            fail(f"group {self._group} has members: only they commit for it; without -p this command is one", EXIT_NO)

    def close(self) -> None:
        """Do nothing: nobody gave them."""


class OfMember:
    """The partitions that a group's coordinator assigns to this reader, which is a member of the group (KIP-848)."""

    _PAUSE_S = 0.5

    def __init__(self, client: "Client", topics: list[str], group: str) -> None:
        from exacta.client.group_member import GroupMember

        self._client = client
        self._group = group
        self._member = GroupMember(client, group, topics)

    @property
    def is_settled(self) -> bool:
        """Return whether this many heartbeats brought no partition that none is to be waited for."""
        return self._member.heartbeats_without_partitions >= _HEARTBEATS_WITHOUT_PARTITIONS

    @property
    def pause_s(self) -> float:
        """Return the time to the next heartbeat, or a time that a user does not notice."""
        return min(self._PAUSE_S, self._member.seconds_to_heartbeat)

    def partitions(self) -> "frozenset[TopicPartition]":
        """Return what is assigned now; end the command where this reader cannot be a member."""
        from exacta.client.errors import KafkaError, UnsupportedByBroker
        from exacta.protocol.kafka.errors import ErrorCode

        try:
            return self._member.assigned()
        except UnsupportedByBroker:
            fail(
                "the cluster has no groups of KIP-848's protocol, which this command speaks: name the partitions with "
                "-p, and it reads beside the group",
                EXIT_NO,
            )
        except KafkaError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            fail(f"group {self._group} has members of the classic protocol, and this command speaks KIP-848's", EXIT_NO)

    def read_by_now(self, partitions: "frozenset[TopicPartition]") -> None:
        """Tell the coordinator, which gives the others to other members."""
        self._member.hold(partitions)

    def committed(self) -> "Mapping[TopicPartition, int]":
        """Return where the group goes on, by partition; wait for transactions that change that."""
        return _committed(self._client, self._group)

    def commit(self, offsets: "Mapping[TopicPartition, int]") -> None:
        """Commit as this member; where it was fenced, the next look brings no partition."""
        self._member.commit(offsets)

    def close(self) -> None:
        """Leave the group."""
        self._member.leave()


def _committed(client: "Client", group: str) -> "Mapping[TopicPartition, int]":
    from exacta.client.group_offsets import fetch_offsets

    return {each: found.offset for each, found in fetch_offsets(client, group, stable=True).items()}
