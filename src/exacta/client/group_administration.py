"""Groups as an administrator sees them: which there are, and their deletion (KIP-229)."""

from __future__ import annotations

from exacta.client.deadline import Deadline
from exacta.client.errors import KafkaError
from exacta.client.routing import GROUP, Client, Coordinator
from exacta.protocol.errors import ErrorCode
from exacta.protocol.messages.k16_list_groups import ListGroupsRequest
from exacta.protocol.messages.k42_delete_groups import DeleteGroupsRequest


def list_groups(client: Client, prefix: str, deadline: Deadline | None = None) -> list[str]:
    """Return the groups whose name begins with `prefix`, from all brokers."""
    replies = client.ask_every_broker(ListGroupsRequest(), what="listing groups", deadline=deadline)
    found = {group.group_id for reply in replies for group in reply.groups if group.group_id.startswith(prefix)}
    return sorted(found)


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
