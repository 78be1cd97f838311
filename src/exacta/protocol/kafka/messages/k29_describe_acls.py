"""DescribeAcls (key 29): list access rules.

KIP-140; KIP-290 pattern types.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int8, Int16, Int32, Message, Schema, String, Structure


class DescribeAclsRequest(Message, kw_only=True):
    """Request of DescribeAcls."""

    SCHEMA: ClassVar[Schema] = Schema(key=29, versions="1-3", flexible="2+")

    resource_type_filter: Annotated[int, Int8("0+")] = 0
    resource_name_filter: Annotated[str | None, String("0+", nullable="0+")] = ""
    pattern_type_filter: Annotated[int, Int8("0+")] = 3
    principal_filter: Annotated[str | None, String("0+", nullable="0+")] = ""
    host_filter: Annotated[str | None, String("0+", nullable="0+")] = ""
    operation: Annotated[int, Int8("0+")] = 0
    permission_type: Annotated[int, Int8("0+")] = 0


class AclDescription(Structure, kw_only=True):
    principal: Annotated[str, String("0+")] = ""
    host: Annotated[str, String("0+")] = ""
    operation: Annotated[int, Int8("0+")] = 0
    permission_type: Annotated[int, Int8("0+")] = 0


class DescribeAclsResource(Structure, kw_only=True):
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""
    pattern_type: Annotated[int, Int8("0+")] = 3
    acls: Annotated[list[AclDescription], Array("0+")] = EMPTY


class DescribeAclsResponse(Message, kw_only=True):
    """Response of DescribeAcls."""

    SCHEMA: ClassVar[Schema] = Schema(key=29, versions="1-3", flexible="2+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    resources: Annotated[list[DescribeAclsResource], Array("0+")] = EMPTY
