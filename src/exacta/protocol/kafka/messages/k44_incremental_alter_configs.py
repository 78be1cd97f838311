"""IncrementalAlterConfigs (key 44): change single configuration values.

KIP-339.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bool, Int8, Int16, Int32, Message, Schema, String, Structure


class AlterableConfig(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    config_operation: Annotated[int, Int8("0+")] = 0
    value: Annotated[str | None, String("0+", nullable="0+")] = None


class AlterConfigsResource(Structure, kw_only=True):
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""
    configs: Annotated[list[AlterableConfig], Array("0+")] = EMPTY


class IncrementalAlterConfigsRequest(Message, kw_only=True):
    """Request of IncrementalAlterConfigs."""

    SCHEMA: ClassVar[Schema] = Schema(key=44, versions="0-1", flexible="1+")

    resources: Annotated[list[AlterConfigsResource], Array("0+")] = EMPTY
    validate_only: Annotated[bool, Bool("0+")] = False


class AlterConfigsResourceResponse(Structure, kw_only=True):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""


class IncrementalAlterConfigsResponse(Message, kw_only=True):
    """Response of IncrementalAlterConfigs."""

    SCHEMA: ClassVar[Schema] = Schema(key=44, versions="0-1", flexible="1+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    responses: Annotated[list[AlterConfigsResourceResponse], Array("0+")] = EMPTY
