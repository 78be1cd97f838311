"""ListGroups names every group that has members or offsets."""

from exacta.core.groups.description import ListedGroup as Listed
from exacta.core.queries.groups import listed_group, sorted_group_names
from exacta.front.broker import Broker
from exacta.kafka.at_follower import EMPTY
from exacta.kafka.context import RequestContext
from exacta.kafka.group_states import state_name
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.listing import describe_all
from exacta.kafka.needs import Shown, or_on_cluster
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k16_list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(broker: Broker, request: ListGroupsRequest, context: RequestContext, reply: Reply) -> None:
    """List the groups, or those in the states (version 4) and of the types (5) asked for, in any case."""
    states = {state.casefold() for state in request.states_filter}
    types = {kind.casefold() for kind in request.types_filter}

    def told(group_id: str, group: Listed) -> ListedGroup | None:
        if types and group.group_type.value not in types:
            return None
        phase = state_name(group.phase)
        if states and phase.casefold() not in states:
            return None
        return ListedGroup(
            group_id=group_id,
            protocol_type=group.protocol_type,
            group_state=phase,
            group_type=group.group_type.value,
        )

    def done(groups: list[ListedGroup]) -> None:
        reply(ListGroupsResponse(groups=groups))

    known = broker.engine.view(sorted_group_names)
    describe_all(broker, context, known, listed_group, told, done)


HANDLER = Handler(
    ApiKey.LIST_GROUPS,
    versions=(0, 5),
    needs=(
        Shown(
            Operation.DESCRIBE, ResourceKind.GROUP, "groups", name="group_id", instead=or_on_cluster(Operation.DESCRIBE)
        ),
    ),
    at_follower=EMPTY,
    handle=handle,
)
