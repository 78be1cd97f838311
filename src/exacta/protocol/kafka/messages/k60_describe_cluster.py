"""DescribeCluster (key 60): brokers and id of the cluster.

KIP-700; KIP-919 endpoint type; KIP-1073 fenced brokers.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bool, Int8, Int16, Int32, Message, Schema, String, Structure


class DescribeClusterRequest(Message, kw_only=True):
    """Request of DescribeCluster."""

    SCHEMA: ClassVar[Schema] = Schema(key=60, versions="0-2", flexible="0+")

    include_cluster_authorized_operations: Annotated[bool, Bool("0+")] = False
    endpoint_type: Annotated[int, Int8("1+")] = 1
    include_fenced_brokers: Annotated[bool, Bool("2+")] = False


class DescribeClusterBroker(Structure, kw_only=True):
    broker_id: Annotated[int, Int32("0+")] = 0
    host: Annotated[str, String("0+")] = ""
    port: Annotated[int, Int32("0+")] = 0
    rack: Annotated[str | None, String("0+", nullable="0+")] = None
    is_fenced: Annotated[bool, Bool("2+")] = False


class DescribeClusterResponse(Message, kw_only=True):
    """Response of DescribeCluster."""

    SCHEMA: ClassVar[Schema] = Schema(key=60, versions="0-2", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    endpoint_type: Annotated[int, Int8("1+")] = 1
    cluster_id: Annotated[str, String("0+")] = ""
    controller_id: Annotated[int, Int32("0+")] = -1
    brokers: Annotated[list[DescribeClusterBroker], Array("0+")] = EMPTY
    cluster_authorized_operations: Annotated[int, Int32("0+")] = -0x8000_0000
