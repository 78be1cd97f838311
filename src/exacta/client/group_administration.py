"""List and delete groups, as an administrator does (KIP-229)."""

from typing import NamedTuple

from exacta.client.deadline import Deadline
from exacta.client.errors import KafkaError
from exacta.client.routing import GROUP, Client, Coordinator
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k16_list_groups import ListGroupsRequest
from exacta.protocol.kafka.messages.k42_delete_groups import DeleteGroupsRequest


class ListedGroup(NamedTuple):
    """A group as ListGroups shows it. `state` is empty where the brokers are too old to say (KIP-518)."""

    group: str
    protocol_type: str  # empty: it holds offsets only
    state: str


def listed_groups(client: Client, deadline: Deadline | None = None) -> list[ListedGroup]:
    """Return all groups, from all brokers, by name."""
    replies = client.ask_every_broker(ListGroupsRequest(), what="listing groups", deadline=deadline)
    found = {each.group_id: each for reply in replies for each in reply.groups}
    return [ListedGroup(name, each.protocol_type, each.group_state) for name, each in sorted(found.items())]


def list_groups(client: Client, prefix: str, deadline: Deadline | None = None) -> list[str]:
    """Return the groups whose name begins with `prefix`, from all brokers."""
    return [each.group for each in listed_groups(client, deadline) if each.group.startswith(prefix)]


def delete_group(client: Client, group: str, deadline: Deadline | None = None) -> bool:
    """Delete a group with its offsets; return whether there was one.

    Raises `KafkaError`, NON_EMPTY_GROUP where it has members.
    """
    try:
        client.call(
            Coordinator(GROUP, group),
            DeleteGroupsRequest(groups_names=[group]),
            what=f"deleting group '{group}'",
            codes=lambda reply: [entry.error_code for entry in reply.results],
            deadline=deadline,
        )
    except KafkaError as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return False
        raise
    return True
