"""ListConfigResources (key 74): list the resources that have configurations of their own.

KIP-1142; KIP-714 metrics subscriptions.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int8, Int16, Int32, Message, Schema, String, Structure


class ListConfigResourcesRequest(Message, kw_only=True):
    """Request of ListConfigResources."""

    SCHEMA: ClassVar[Schema] = Schema(key=74, versions="0-1", flexible="0+")

    resource_types: Annotated[list[int], Array("1+", of=Int8)] = EMPTY


class ConfigResource(Structure, kw_only=True):
    resource_name: Annotated[str, String("0+")] = ""
    resource_type: Annotated[int, Int8("1+")] = 16


class ListConfigResourcesResponse(Message, kw_only=True):
    """Response of ListConfigResources."""

    SCHEMA: ClassVar[Schema] = Schema(key=74, versions="0-1", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    config_resources: Annotated[list[ConfigResource], Array("0+")] = EMPTY
