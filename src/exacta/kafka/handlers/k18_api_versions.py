"""ApiVersions tells what is served here. It is made from the table of handlers, so that it cannot lie.

A client that has been here before may say which cluster and node it means. Where it has reached another one, because an
address was given to somebody else, it is refused, and looks its bootstrap addresses up again (KIP-1242).

It reads bytes before a login.
"""

import re

from exacta.config.configuration import Configuration
from exacta.core.ids import TransactionVersion
from exacta.front.broker import Broker
from exacta.kafka.at_follower import SERVES
from exacta.kafka.context import ApiVersions, RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import OPEN_TO_ALL
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.codec import encode_response
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k18_api_versions import (
    NO_NODE,
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from exacta.protocol.kafka.schema import Buffer

TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
CONSUMER_PROTOCOL_LEVEL = 1  # of the feature group.version: KIP-848 is served
LEVEL_0_SINCE = 4
"""Older clients refuse a feature whose levels begin at 0, and are told that they begin at 1 (KIP-584)."""


_NAMED_SINCE = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""The names and versions of client software that Kafka takes (KIP-511)."""


def _response(served: ApiVersions, code: ErrorCode) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=code,
        api_keys=[
            ApiVersion(api_key=key, min_version=min_version, max_version=max_version)
            for key, min_version, max_version in served
        ],
    )


def features(configuration: Configuration) -> dict[str, tuple[int, int]]:
    """Return the features: by name the highest level that there is, and the one in force."""
    return {
        TRANSACTION_VERSION: (max(TransactionVersion), configuration.transaction_version),
        GROUP_VERSION: (CONSUMER_PROTOCOL_LEVEL, CONSUMER_PROTOCOL_LEVEL),
    }


def _refusal(broker: Broker, request: ApiVersionsRequest, version: int) -> ErrorCode:
    """Return why the request is refused, or NONE; older versions have the values of the fields that they lack."""
    names_cluster, names_node = request.cluster_id is not None, request.node_id != NO_NODE
    software = request.client_software_name, request.client_software_version
    if names_cluster != names_node or (version >= _NAMED_SINCE and not all(map(_SOFTWARE.fullmatch, software))):
        return ErrorCode.INVALID_REQUEST
    if names_cluster and (request.cluster_id, request.node_id) != (broker.cluster_id, broker.cluster.node_id):
        return ErrorCode.REBOOTSTRAP_REQUIRED
    return ErrorCode.NONE


def handle(broker: Broker, request: ApiVersionsRequest, context: RequestContext, reply: Reply) -> None:
    """Answer at once: what is served, and the level of the features that clients go by (KIP-584)."""
    if (code := _refusal(broker, request, context.version)) != ErrorCode.NONE:
        reply(ApiVersionsResponse(error_code=code))
        return
    context.connection.client_software = request.client_software_name
    if context.connection.login is not None:
        context.connection.login.versions_told()
    response = _response(context.connection.api_versions(), ErrorCode.NONE)
    lowest = 0 if context.version >= LEVEL_0_SINCE else 1
    in_force = features(broker.configuration)
    response.supported_features = [
        SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
        for name, (highest, _) in in_force.items()
    ]
    response.finalized_features_epoch = 0
    response.finalized_features = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, (_, level) in in_force.items()
    ]
    reply(response)


def answer_unserved(context: RequestContext, body: memoryview) -> list[Buffer]:
    """Tell a client that speaks a version we do not know which ones we do (KIP-511), in version 0."""
    return encode_response(
        _response(context.connection.api_versions(), ErrorCode.UNSUPPORTED_VERSION), 0, context.correlation_id
    )


HANDLER = Handler(
    ApiKey.API_VERSIONS,
    versions=(0, 5),
    needs=OPEN_TO_ALL,
    at_follower=SERVES,
    handle=handle,
    answer_unserved=answer_unserved,
)
