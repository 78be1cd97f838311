"""One request to Pulsar's web interface, and its errors: a status and `{"reason": ...}`."""

from typing import Final

import msgspec
from starlette.requests import Request as HttpRequest

from exacta.front.untrusted_json import NoJson, decode_json
from exacta.protocol.pulsar.messages_pb2 import ServerError
from exacta.protocol.pulsar.topic_names import PERSISTENT
from exacta.pulsar.errors import AnsweringRequest
from exacta.pulsar.shared import PulsarShared
from exacta.web.requests import WebRequest

NOT_FOUND: Final = 404
NOT_ALLOWED: Final = 405
NOT_ACCEPTABLE: Final = 406
CONFLICT: Final = 409
PRECONDITION_FAILED: Final = 412
UNSUPPORTED_MEDIA_TYPE: Final = 415
UNPROCESSABLE: Final = 422
NOT_IMPLEMENTED: Final = 501

_MEDIA_TYPES: Final = ("application/json", "application/vnd.partitioned-topic-metadata+json")


class PartitionedTopic(msgspec.Struct):
    """A topic to be created, as Pulsar's clients of the web interface describe it."""

    partitions: int
    properties: dict[str, str] | None = None


_PARTITIONED_TOPIC: msgspec.json.Decoder[int | PartitionedTopic] = msgspec.json.Decoder(int | PartitionedTopic)

STATUSES: Final[dict[int, int]] = {
    ServerError.UnknownError: 500,
    ServerError.MetadataError: CONFLICT,
    ServerError.PersistenceError: 500,
    ServerError.AuthenticationError: 401,
    ServerError.AuthorizationError: 403,
    ServerError.ConsumerBusy: CONFLICT,
    ServerError.ServiceNotReady: 503,
    ServerError.ProducerBlockedQuotaExceededError: CONFLICT,
    ServerError.ProducerBlockedQuotaExceededException: CONFLICT,
    ServerError.ChecksumError: 400,
    ServerError.UnsupportedVersionError: 400,
    ServerError.TopicNotFound: NOT_FOUND,
    ServerError.SubscriptionNotFound: NOT_FOUND,
    ServerError.ConsumerNotFound: NOT_FOUND,
    ServerError.TooManyRequests: 429,
    ServerError.TopicTerminatedError: CONFLICT,
    ServerError.ProducerBusy: CONFLICT,
    ServerError.InvalidTopicName: PRECONDITION_FAILED,
    ServerError.IncompatibleSchema: CONFLICT,
    ServerError.ConsumerAssignError: CONFLICT,
    ServerError.TransactionCoordinatorNotFound: NOT_FOUND,
    ServerError.InvalidTxnStatus: CONFLICT,
    ServerError.NotAllowedError: NOT_ALLOWED,
    ServerError.TransactionConflict: CONFLICT,
    ServerError.TransactionNotFound: NOT_FOUND,
    ServerError.ProducerFenced: CONFLICT,
}
"""The statuses of Pulsar's errors."""


class RestRequest(AnsweringRequest, WebRequest):
    """A request with the names in its path."""

    __slots__ = ("shared",)

    def __init__(self, http: HttpRequest, body: bytes, shared: PulsarShared) -> None:
        super().__init__(http, body)
        self.shared = shared

    @property
    def topic(self) -> str:
        """The full name of the topic in the path."""
        names = self.http.path_params
        return f"{names.get('domain', PERSISTENT)}://{names['tenant']}/{names['namespace']}/{names['topic']}"

    def is_set(self, name: str) -> bool:
        """Return whether a parameter of the query is true; Java's clients write `true`."""
        return self.http.query_params.get(name, "").lower() == "true"

    def refuse(self, error: ServerError, text: str) -> None:
        """Answer with an error."""
        self.refuse_with(STATUSES[error], text)

    def refuse_with(self, status: int, reason: str) -> None:
        """Answer with a status that no error of the protocol has."""
        self.reply_json({"reason": reason}, status)

    def partitioned_topic(self) -> PartitionedTopic | None:
        """Read the topic from the body; answer a bad request and return None.

        Go's client of the web interface sends a structure of its own media type, and others the bare number.
        """
        media_type = self.http.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type not in _MEDIA_TYPES:
            self.refuse_with(UNSUPPORTED_MEDIA_TYPE, f"the body must be {' or '.join(_MEDIA_TYPES)}")
            return None
        try:
            body = decode_json(self.body, _PARTITIONED_TOPIC)
        except NoJson as error:
            self.refuse_with(400, f"the body must be a number of partitions: {error}")
            return None
        return PartitionedTopic(body) if isinstance(body, int) else body
