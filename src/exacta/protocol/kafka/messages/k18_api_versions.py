"""ApiVersions (key 18): versions that a broker serves.

KIP-35; KIP-511 client name; KIP-584 features; KIP-1242 cluster and node that the client means.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bool, Int16, Int32, Int64, Message, Schema, String, Structure

NO_NODE = -1


class ApiVersionsRequest(Message, kw_only=True):
    """Request of ApiVersions."""

    SCHEMA: ClassVar[Schema] = Schema(key=18, versions="0-5", flexible="3+")

    client_software_name: Annotated[str, String("3+")] = ""
    client_software_version: Annotated[str, String("3+")] = ""
    cluster_id: Annotated[str | None, String("5+", nullable="5+")] = None
    node_id: Annotated[int, Int32("5+")] = NO_NODE


class ApiVersion(Structure, kw_only=True):
    api_key: Annotated[int, Int16("0+")] = 0
    min_version: Annotated[int, Int16("0+")] = 0
    max_version: Annotated[int, Int16("0+")] = 0


class SupportedFeatureKey(Structure, kw_only=True):
    name: Annotated[str, String("3+")] = ""
    min_version: Annotated[int, Int16("3+")] = 0
    max_version: Annotated[int, Int16("3+")] = 0


class FinalizedFeatureKey(Structure, kw_only=True):
    name: Annotated[str, String("3+")] = ""
    max_version_level: Annotated[int, Int16("3+")] = 0
    min_version_level: Annotated[int, Int16("3+")] = 0


class ApiVersionsResponse(Message, kw_only=True):
    """Response of ApiVersions."""

    SCHEMA: ClassVar[Schema] = Schema(key=18, versions="0-5", flexible="3+")

    error_code: Annotated[int, Int16("0+")] = 0
    api_keys: Annotated[list[ApiVersion], Array("0+")] = EMPTY
    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    supported_features: Annotated[list[SupportedFeatureKey], Array("3+", tag=0)] = EMPTY
    finalized_features_epoch: Annotated[int, Int64("3+", tag=1)] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], Array("3+", tag=2)] = EMPTY
    zk_migration_ready: Annotated[bool, Bool("3+", tag=3)] = False
