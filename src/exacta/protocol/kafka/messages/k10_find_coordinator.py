"""FindCoordinator (key 10): find the coordinator of a group or of a transactional id.

KIP-98; KIP-699 several keys.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int8, Int16, Int32, Message, Schema, String, Structure


class FindCoordinatorRequest(Message, kw_only=True):
    """Request of FindCoordinator."""

    SCHEMA: ClassVar[Schema] = Schema(key=10, versions="0-6", flexible="3+")

    key: Annotated[str, String("0-3")] = ""
    key_type: Annotated[int, Int8("1+")] = 0
    coordinator_keys: Annotated[list[str], Array("4+", of=String)] = EMPTY


class Coordinator(Structure, kw_only=True):
    key: Annotated[str, String("4+")] = ""
    node_id: Annotated[int, Int32("4+")] = 0
    host: Annotated[str, String("4+")] = ""
    port: Annotated[int, Int32("4+")] = 0
    error_code: Annotated[int, Int16("4+")] = 0
    error_message: Annotated[str | None, String("4+", nullable="4+")] = None


class FindCoordinatorResponse(Message, kw_only=True):
    """Response of FindCoordinator."""

    SCHEMA: ClassVar[Schema] = Schema(key=10, versions="0-6", flexible="3+")

    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    error_code: Annotated[int, Int16("0-3")] = 0
    error_message: Annotated[str | None, String("1-3", nullable="1-3")] = None
    node_id: Annotated[int, Int32("0-3")] = 0
    host: Annotated[str, String("0-3")] = ""
    port: Annotated[int, Int32("0-3")] = 0
    coordinators: Annotated[list[Coordinator], Array("4+")] = EMPTY
