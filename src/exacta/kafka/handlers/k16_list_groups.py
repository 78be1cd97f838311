"""ListGroups: every group that has members or offsets."""

from exacta.core.state.classic_membership import CONSUMERS, NOBODY
from exacta.core.state.state import State
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.group_states import CLASSIC_STATES, CONSUMER_STATES
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.kafka.messages.k16_list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

KEY = ApiKey.LIST_GROUPS
MIN_VERSION = 0
MAX_VERSION = 5
CLASSIC, CONSUMER = "classic", "consumer"
PLAIN_ERROR = ListGroupsResponse


def handle(broker: BrokerContext, request: ListGroupsRequest, context: RequestContext, reply: Reply) -> None:
    """List them, or those in the states (version 4) and of the types (5) asked for, whatever their letters' case."""
    states = {state.casefold() for state in request.states_filter}
    types = {kind.casefold() for kind in request.types_filter}

    def view(state: State, now_ms: int) -> ListGroupsResponse:
        listed = []
        volatile = state.volatile
        for group_id in sorted(state.groups.keys() | volatile.memberships.keys() | volatile.consumer_groups.keys()):
            group = _listed(state, group_id)
            if types and group.group_type not in types:
                continue
            if states and group.group_state.casefold() not in states:
                continue
            listed.append(group)
        return ListGroupsResponse(groups=listed)

    broker.read(context, view, reply)


def _listed(state: State, group_id: str) -> ListedGroup:
    consumers = state.volatile.consumer_groups.get(group_id)
    if consumers is not None:
        phase = CONSUMER_STATES[consumers.phase]
        return ListedGroup(group_id=group_id, protocol_type=CONSUMERS, group_state=phase, group_type=CONSUMER)
    membership = state.volatile.memberships.get(group_id, NOBODY)
    return ListedGroup(
        group_id=group_id,
        protocol_type=membership.protocol_type,
        group_state=CLASSIC_STATES[membership.phase],
        group_type=CLASSIC,
    )
