"""UpdateFeatures: a feature's level is an option of the broker; asking for the one that it has is granted (KIP-584).

All updates of a request are one: where one cannot be, none is.
"""

from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_CONTROLLER
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.handlers.k18_api_versions import features
from exacta.kafka.needs import Whole
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k57_update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE_TYPES = (1, 2, 3)
"""Upgrade, safe and unsafe downgrade."""


def handle(broker: Broker, request: UpdateFeaturesRequest, context: RequestContext, reply: Reply) -> None:
    """Check each update; nothing changes."""
    for update in request.feature_updates:
        wrong = _fault(update, features(broker.configuration))
        if wrong is not None:
            reply(UpdateFeaturesResponse(error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message=wrong))
            return
    results = [UpdatableFeatureResult(feature=update.feature) for update in request.feature_updates]
    reply(UpdateFeaturesResponse(results=results))


def _fault(update: FeatureUpdateKey, in_force: dict[str, tuple[int, int]]) -> str | None:
    name, wanted = update.feature, update.max_version_level
    if name not in in_force:
        return f"there is no feature {name[:100]!r} here"
    highest, level = in_force[name]
    if not 0 <= wanted <= highest:
        return f"{name} has no level {wanted}"
    if update.upgrade_type not in UPGRADE_TYPES:
        return f"there is no type of upgrade {update.upgrade_type}"
    if wanted != level:
        return f"{name} is {level}: a running broker does not change it"
    return None


HANDLER = Handler(
    ApiKey.UPDATE_FEATURES,
    versions=(0, 2),
    needs=(Whole(Operation.ALTER, ResourceKind.CLUSTER),),
    at_follower=NOT_CONTROLLER,
    handle=handle,
)
