"""UpdateFeatures (key 57): change the levels of features.

KIP-584; KIP-778 kinds of change.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bool, Int8, Int16, Int32, Message, Schema, String, Structure


class FeatureUpdateKey(Structure, kw_only=True):
    feature: Annotated[str, String("0+")] = ""
    max_version_level: Annotated[int, Int16("0+")] = 0
    allow_downgrade: Annotated[bool, Bool("0")] = False
    upgrade_type: Annotated[int, Int8("1+")] = 1


class UpdateFeaturesRequest(Message, kw_only=True):
    """Request of UpdateFeatures."""

    SCHEMA: ClassVar[Schema] = Schema(key=57, versions="0-2", flexible="0+")

    timeout_ms: Annotated[int, Int32("0+")] = 60000
    feature_updates: Annotated[list[FeatureUpdateKey], Array("0+")] = EMPTY
    validate_only: Annotated[bool, Bool("1+")] = False


class UpdatableFeatureResult(Structure, kw_only=True):
    feature: Annotated[str, String("0-1")] = ""
    error_code: Annotated[int, Int16("0-1")] = 0
    error_message: Annotated[str | None, String("0-1", nullable="0-1")] = None


class UpdateFeaturesResponse(Message, kw_only=True):
    """Response of UpdateFeatures."""

    SCHEMA: ClassVar[Schema] = Schema(key=57, versions="0-2", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    results: Annotated[list[UpdatableFeatureResult], Array("0-1")] = EMPTY
