"""ListGroups names every group that has members or offsets."""

from exacta.core.groups.description import list_groups
from exacta.core.state.state import State
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.group_states import state_name
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Shown, or_on_cluster
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k16_list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

KEY = ApiKey.LIST_GROUPS
MIN_VERSION = 0
MAX_VERSION = 5

NEEDS = (
    Shown(Operation.DESCRIBE, ResourceKind.GROUP, "groups", name="group_id", instead=or_on_cluster(Operation.DESCRIBE)),
)


def handle(broker: BrokerContext, request: ListGroupsRequest, context: RequestContext, reply: Reply) -> None:
    """List the groups, or those in the states (version 4) and of the types (5) asked for, in any case."""
    states = {state.casefold() for state in request.states_filter}
    types = {kind.casefold() for kind in request.types_filter}

    def view(state: State, now_ms: int) -> ListGroupsResponse:
        return ListGroupsResponse(
            groups=[
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type,
                    group_state=state_name(group.phase),
                    group_type=group.group_type.value,
                )
                for group in list_groups(state)
                if (not types or group.group_type.value in types)
                and (not states or state_name(group.phase).casefold() in states)
            ]
        )

    broker.read(context, view, reply)


HANDLER = Handler(
    key=KEY,
    min_version=MIN_VERSION,
    max_version=MAX_VERSION,
    needs=NEEDS,
    handle=handle,
    plain_error=ListGroupsResponse,
)
