"""The questions as they are sent."""

from msgspec import DecodeError, json

from exacta.readmodel.groups import AskLag
from exacta.readmodel.subscriptions import AskSubscriptions
from exacta.readmodel.transactions import AskTransactions

Question = AskTransactions | AskLag | AskSubscriptions

NO_JSON = (DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions with which msgspec refuses what somebody else has sent: its own, and one each for bytes that are no
UTF-8, and for nesting that is too deep."""

_decoder: json.Decoder[Question] = json.Decoder(Question)


def decode_question(body: bytes) -> Question | None:
    """Return what is asked; None: it is no question, or one that this version does not know."""
    try:
        return _decoder.decode(body)
    except NO_JSON:
        return None
