"""ApiVersions: what is served here. Derived from the table of handlers, so that it cannot lie."""

from functools import cache

from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.protocol.codec import encode_response
from exacta.protocol.errors import ErrorCode
from exacta.protocol.messages.k18_api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from exacta.protocol.schema import Buffer

KEY = ApiKey.API_VERSIONS
MIN_VERSION = 0
MAX_VERSION = 3

TRANSACTION_VERSION = "transaction.version"
TRANSACTION_VERSION_LEVEL = 1
"""KIP-890's level 2 changes the protocol of every client that sees it here; it comes whole or not at all."""


@cache
def _served() -> tuple[tuple[int, int, int], ...]:
    from exacta.kafka.handlers import HANDLERS  # the table holds this module too

    return tuple(
        (handler.key, handler.advertised_min_version, handler.max_version)
        for handler in sorted(HANDLERS.values(), key=lambda handler: handler.key)
    )


def _response(code: ErrorCode) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=code,
        api_keys=[
            ApiVersion(api_key=key, min_version=min_version, max_version=max_version)
            for key, min_version, max_version in _served()
        ],
        # KIP-584. Level 0 cannot be told in this version: clients up to 3.8 refuse a range that begins there.
        supported_features=[
            SupportedFeatureKey(
                name=TRANSACTION_VERSION,
                min_version=TRANSACTION_VERSION_LEVEL,
                max_version=TRANSACTION_VERSION_LEVEL,
            )
        ],
        finalized_features_epoch=0,
        finalized_features=[
            FinalizedFeatureKey(
                name=TRANSACTION_VERSION,
                max_version_level=TRANSACTION_VERSION_LEVEL,
                min_version_level=TRANSACTION_VERSION_LEVEL,
            )
        ],
    )


def handle(broker: BrokerContext, request: ApiVersionsRequest, context: RequestContext, reply: Reply) -> None:
    """Answer at once."""
    reply(_response(ErrorCode.NONE))


def answer_unserved(context: RequestContext, body: memoryview) -> list[Buffer]:
    """Tell a client that speaks a version we do not know which ones we do (KIP-511), in version 0."""
    return encode_response(_response(ErrorCode.UNSUPPORTED_VERSION), 0, context.correlation_id)
