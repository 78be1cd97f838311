"""Ask tells what no API of Kafka has room for: of transactions, groups, subscriptions and brokers. Exacta's own.

Question and answer are JSON (`exacta.readmodel`); `kafka/views/` has a module for each question, and the rights that it
needs. `k17784_end_transactions` says why our own keys begin where they do.
"""

from msgspec import json

from exacta.front.broker import Broker
from exacta.front.untrusted_json import NoJson, decode_json
from exacta.kafka.at_follower import by_request
from exacta.kafka.context import RequestContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Inside
from exacta.kafka.views import cluster, lag, subscriptions, transactions
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17792_ask import AskRequest, AskResponse
from exacta.readmodel.cluster import AskCluster
from exacta.readmodel.groups import AskLag
from exacta.readmodel.question import Question
from exacta.readmodel.transactions import AskTransactions

LONGEST_QUESTION = 1_000_000
"""The bound on the bytes of a question, which is decoded in one step."""

_QUESTIONS: json.Decoder[Question] = json.Decoder(Question)


def handle(broker: Broker, request: AskRequest, context: RequestContext, reply: Reply) -> None:
    """Answer a question when all that the answer says is durable."""
    asked = decode_question(request.question)

    def done(answer: bytes | ErrorCode) -> None:
        reply(AskResponse(error_code=answer) if isinstance(answer, ErrorCode) else AskResponse(answer=answer))

    if asked is None:
        done(ErrorCode.INVALID_REQUEST)
    elif isinstance(asked, AskCluster):
        cluster.tell(broker, context, done)
    elif not broker.cluster.leads:
        done(ErrorCode.NOT_CONTROLLER)
    elif isinstance(asked, AskTransactions):
        transactions.tell(broker, context, asked, done)
    elif isinstance(asked, AskLag):
        lag.tell(broker, context, asked, done)
    else:
        subscriptions.tell(broker, context, asked, done)


def decode_question(question: bytes) -> Question | None:
    """Return the question; None if it is no question, or one that this version does not know."""
    if len(question) > LONGEST_QUESTION:
        return None
    try:
        return decode_json(question, _QUESTIONS)
    except NoJson:
        return None


HANDLER = Handler(
    ApiKey.ASK,
    versions=(0, 0),
    needs=(
        Inside(Operation.DESCRIBE, ResourceKind.TRANSACTIONAL_ID),
        Inside(Operation.DESCRIBE, ResourceKind.GROUP),
        Inside(Operation.DESCRIBE, ResourceKind.TOPIC),
        Inside(Operation.DESCRIBE, ResourceKind.CLUSTER),
    ),
    at_follower=by_request("It answers what is asked of the cluster. It refuses other questions by NOT_CONTROLLER."),
    handle=handle,
)
