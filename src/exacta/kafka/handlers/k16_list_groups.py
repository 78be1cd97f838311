"""ListGroups: every group that has members or offsets."""

from exacta.core.membership import NOBODY
from exacta.core.state import State
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.messages.k16_list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

KEY = ApiKey.LIST_GROUPS
MIN_VERSION = 0
MAX_VERSION = 4
NEWER = "5 asks for groups of one type (KIP-848)"
PLAIN_ERROR = ListGroupsResponse


def handle(broker: BrokerContext, request: ListGroupsRequest, context: RequestContext, reply: Reply) -> None:
    """List them, or those in the states asked for (version 4), whatever the case of their letters."""
    states = {state.casefold() for state in request.states_filter}

    def view(state: State, now_ms: int) -> ListGroupsResponse:
        listed = []
        for group_id in sorted(state.groups.keys() | state.volatile.memberships.keys()):
            membership = state.volatile.memberships.get(group_id, NOBODY)
            if states and membership.phase.value.casefold() not in states:
                continue
            listed.append(
                ListedGroup(
                    group_id=group_id,
                    protocol_type=membership.protocol_type,
                    group_state=membership.phase.value,
                )
            )
        return ListGroupsResponse(groups=listed)

    broker.read(context, view, reply)
