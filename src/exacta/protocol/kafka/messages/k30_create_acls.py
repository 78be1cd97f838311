"""CreateAcls (key 30): add access rules.

KIP-140; KIP-290 pattern types.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int8, Int16, Int32, Message, Schema, String, Structure


class AclCreation(Structure, kw_only=True):
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""
    resource_pattern_type: Annotated[int, Int8("0+")] = 3
    principal: Annotated[str, String("0+")] = ""
    host: Annotated[str, String("0+")] = ""
    operation: Annotated[int, Int8("0+")] = 0
    permission_type: Annotated[int, Int8("0+")] = 0


class CreateAclsRequest(Message, kw_only=True):
    """Request of CreateAcls."""

    SCHEMA: ClassVar[Schema] = Schema(key=30, versions="1-3", flexible="2+")

    creations: Annotated[list[AclCreation], Array("0+")] = EMPTY


class AclCreationResult(Structure, kw_only=True):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None


class CreateAclsResponse(Message, kw_only=True):
    """Response of CreateAcls."""

    SCHEMA: ClassVar[Schema] = Schema(key=30, versions="1-3", flexible="2+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    results: Annotated[list[AclCreationResult], Array("0+")] = EMPTY
