"""DescribeConfigs (key 32): configuration of topics and brokers.

KIP-133; KIP-226 synonyms; KIP-569 documentation.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bool, Int8, Int16, Int32, Message, Schema, String, Structure


class DescribeConfigsResource(Structure, kw_only=True):
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""
    configuration_keys: Annotated[list[str] | None, Array("0+", nullable="0+", of=String)] = None


class DescribeConfigsRequest(Message, kw_only=True):
    """Request of DescribeConfigs."""

    SCHEMA: ClassVar[Schema] = Schema(key=32, versions="1-4", flexible="4+")

    resources: Annotated[list[DescribeConfigsResource], Array("0+")] = EMPTY
    include_synonyms: Annotated[bool, Bool("1+")] = False
    include_documentation: Annotated[bool, Bool("3+")] = False


class DescribeConfigsSynonym(Structure, kw_only=True):
    name: Annotated[str, String("1+")] = ""
    value: Annotated[str | None, String("1+", nullable="0+")] = None
    source: Annotated[int, Int8("1+")] = 0


class DescribeConfigsResourceResult(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    value: Annotated[str | None, String("0+", nullable="0+")] = None
    read_only: Annotated[bool, Bool("0+")] = False
    config_source: Annotated[int, Int8("1+")] = -1
    is_sensitive: Annotated[bool, Bool("0+")] = False
    synonyms: Annotated[list[DescribeConfigsSynonym], Array("1+")] = EMPTY
    config_type: Annotated[int, Int8("3+")] = 0
    documentation: Annotated[str | None, String("3+", nullable="0+")] = None


class DescribeConfigsResult(Structure, kw_only=True):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    resource_type: Annotated[int, Int8("0+")] = 0
    resource_name: Annotated[str, String("0+")] = ""
    configs: Annotated[list[DescribeConfigsResourceResult], Array("0+")] = EMPTY


class DescribeConfigsResponse(Message, kw_only=True):
    """Response of DescribeConfigs."""

    SCHEMA: ClassVar[Schema] = Schema(key=32, versions="1-4", flexible="4+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    results: Annotated[list[DescribeConfigsResult], Array("0+")] = EMPTY
