"""Questions and answers as they are sent: an older and a newer side understand each other."""

import msgspec
import pytest

from exacta.kafka.handlers.k17792_ask import decode_question
from exacta.readmodel.cluster import AskCluster
from exacta.readmodel.groups import AskLag, GroupLag, Lag
from exacta.readmodel.question import Question
from exacta.readmodel.subscriptions import AskSubscriptions
from exacta.readmodel.transactions import AskTransactions, Explanation, Transactions


@pytest.mark.parametrize(
    "asked",
    [
        AskTransactions(),
        AskTransactions(transactional_ids=("x", "y"), handles=(17,)),
        AskLag(group="g"),
        AskCluster(),
        AskSubscriptions(topics=("t",), partitions=(0, 2), names=("s",), has_details=True, most=3, after=("t", 1, "s")),
    ],
)
def test_a_question_is_read_as_it_was_asked(asked: Question) -> None:
    assert decode_question(msgspec.json.encode(asked)) == asked


NO_UTF_8, TOO_DEEP = b'{"type":"lag","group":"\xff"}', b'{"type":"lag","group":"g","since":' + b"[" * 10_000


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b'{"type":"weather"}', b'{"type":"lag"}', b"\xff", NO_UTF_8, TOO_DEEP]
)
def test_what_is_no_question_is_none(body: bytes) -> None:
    assert decode_question(body) is None


def test_a_field_that_is_not_known_yet_is_ignored() -> None:
    assert decode_question(b'{"type":"lag","group":"g","since":3}') == AskLag(group="g")
    answer = b'{"group":"g","partitions":[],"later":[1],"version":1}'
    assert msgspec.json.decode(answer, type=GroupLag) == GroupLag(group="g", partitions=())


def test_a_field_that_an_older_broker_leaves_out_has_its_default() -> None:
    answer = b'{"transactions":[{"transactional_id":"x","state":"Empty","producer_id":1,"producer_epoch":0}]}'
    found = Explanation(transactional_id="x", state="Empty", producer_id=1, producer_epoch=0)
    assert msgspec.json.decode(answer, type=Transactions) == Transactions(transactions=(found,))


def test_numbers_and_names_stay_what_they_are() -> None:
    lag = Lag(topic='a"b\\ü', partition=1, committed_offset=2**63 - 1, last_stable_offset=0, high_watermark=0)
    assert msgspec.json.decode(msgspec.json.encode(lag), type=Lag) == lag
