"""DescribeGroups (key 15): state and members of groups.

KIP-345; KIP-430 authorized operations; KIP-1043 error message.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bool, Bytes, Int16, Int32, Message, Schema, String, Structure


class DescribeGroupsRequest(Message, kw_only=True):
    """Request of DescribeGroups."""

    SCHEMA: ClassVar[Schema] = Schema(key=15, versions="0-6", flexible="5+")

    groups: Annotated[list[str], Array("0+", of=String)] = EMPTY
    include_authorized_operations: Annotated[bool, Bool("3+")] = False


class DescribedGroupMember(Structure, kw_only=True):
    member_id: Annotated[str, String("0+")] = ""
    group_instance_id: Annotated[str | None, String("4+", nullable="4+")] = None
    client_id: Annotated[str, String("0+")] = ""
    client_host: Annotated[str, String("0+")] = ""
    member_metadata: Annotated[bytes, Bytes("0+")] = b""
    member_assignment: Annotated[bytes, Bytes("0+")] = b""


class DescribedGroup(Structure, kw_only=True):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("6+", nullable="6+")] = None
    group_id: Annotated[str, String("0+")] = ""
    group_state: Annotated[str, String("0+")] = ""
    protocol_type: Annotated[str, String("0+")] = ""
    protocol_data: Annotated[str, String("0+")] = ""
    members: Annotated[list[DescribedGroupMember], Array("0+")] = EMPTY
    authorized_operations: Annotated[int, Int32("3+")] = -0x8000_0000


class DescribeGroupsResponse(Message, kw_only=True):
    """Response of DescribeGroups."""

    SCHEMA: ClassVar[Schema] = Schema(key=15, versions="0-6", flexible="5+")

    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    groups: Annotated[list[DescribedGroup], Array("0+")] = EMPTY
