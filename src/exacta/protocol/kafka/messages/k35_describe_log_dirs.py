"""DescribeLogDirs (key 35): sizes of partitions on disk.

KIP-113; KIP-827 sizes of the disk; KIP-1066 cordoned directories.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bool, Int16, Int32, Int64, Message, Schema, String, Structure


class DescribableLogDirTopic(Structure, kw_only=True):
    topic: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = EMPTY


class DescribeLogDirsRequest(Message, kw_only=True):
    """Request of DescribeLogDirs."""

    SCHEMA: ClassVar[Schema] = Schema(key=35, versions="1-5", flexible="2+")

    topics: Annotated[list[DescribableLogDirTopic] | None, Array("0+", nullable="0+")] = EMPTY


class DescribeLogDirsPartition(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    partition_size: Annotated[int, Int64("0+")] = 0
    offset_lag: Annotated[int, Int64("0+")] = 0
    is_future_key: Annotated[bool, Bool("0+")] = False


class DescribeLogDirsTopic(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[DescribeLogDirsPartition], Array("0+")] = EMPTY


class DescribeLogDirsResult(Structure, kw_only=True):
    error_code: Annotated[int, Int16("0+")] = 0
    log_dir: Annotated[str, String("0+")] = ""
    topics: Annotated[list[DescribeLogDirsTopic], Array("0+")] = EMPTY
    total_bytes: Annotated[int, Int64("4+")] = -1
    usable_bytes: Annotated[int, Int64("4+")] = -1
    is_cordoned: Annotated[bool, Bool("5+")] = False


class DescribeLogDirsResponse(Message, kw_only=True):
    """Response of DescribeLogDirs."""

    SCHEMA: ClassVar[Schema] = Schema(key=35, versions="1-5", flexible="2+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("3+")] = 0
    results: Annotated[list[DescribeLogDirsResult], Array("0+")] = EMPTY
