"""ListGroups (key 16): groups of a broker.

KIP-518 states; KIP-848 types.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int16, Int32, Message, Schema, String, Structure


class ListGroupsRequest(Message, kw_only=True):
    """Request of ListGroups."""

    SCHEMA: ClassVar[Schema] = Schema(key=16, versions="0-5", flexible="3+")

    states_filter: Annotated[list[str], Array("4+", of=String)] = EMPTY
    types_filter: Annotated[list[str], Array("5+", of=String)] = EMPTY


class ListedGroup(Structure, kw_only=True):
    group_id: Annotated[str, String("0+")] = ""
    protocol_type: Annotated[str, String("0+")] = ""
    group_state: Annotated[str, String("4+")] = ""
    group_type: Annotated[str, String("5+")] = ""


class ListGroupsResponse(Message, kw_only=True):
    """Response of ListGroups."""

    SCHEMA: ClassVar[Schema] = Schema(key=16, versions="0-5", flexible="3+")

    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    groups: Annotated[list[ListedGroup], Array("0+")] = EMPTY
