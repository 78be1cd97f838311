"""AlterConfigs (key 33): replace all configuration values of a resource.

KIP-133; superseded by IncrementalAlterConfigs (KIP-339).
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bool, Int8, Int16, Int32, Message, Schema, String, Structure


class AlterableConfig(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    value: Annotated[str | None, String("0+", nullable="0+")] = None


class AlterConfigsResource(Structure, kw_only=True):
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""
    configs: Annotated[list[AlterableConfig], Array("0+")] = EMPTY


class AlterConfigsRequest(Message, kw_only=True):
    """Request of AlterConfigs."""

    SCHEMA: ClassVar[Schema] = Schema(key=33, versions="0-2", flexible="2+")

    resources: Annotated[list[AlterConfigsResource], Array("0+")] = EMPTY
    validate_only: Annotated[bool, Bool("0+")] = False


class AlterConfigsResourceResponse(Structure, kw_only=True):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""


class AlterConfigsResponse(Message, kw_only=True):
    """Response of AlterConfigs."""

    SCHEMA: ClassVar[Schema] = Schema(key=33, versions="0-2", flexible="2+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    responses: Annotated[list[AlterConfigsResourceResponse], Array("0+")] = EMPTY
