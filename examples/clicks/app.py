"""Pass clicks on, in lower case, and keep those aside that are none.

    SERVERS=127.0.0.1:9092 faststream run examples.clicks.app:app

FastStream has no transactions over offsets and records: a click is passed on at least once, and after a crash perhaps
twice. Its producer is idempotent, so that a lost answer alone doubles nothing. examples/alerts has the same client with
`exacta.exactly_once`.
"""

import os

from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker, KafkaMessage
from pydantic import BaseModel, ValidationError


class Click(BaseModel):
    """A click on a page."""

    user: str
    page: str


def make_app(servers: str, clicks: str = "clicks") -> FastStream:
    """Return the app; its topics are named after `clicks`."""
    broker = KafkaBroker(servers, enable_idempotence=True)
    clean = broker.publisher(f"{clicks}-clean")
    odd = broker.publisher(f"{clicks}-odd")

    @broker.subscriber(
        clicks,
        group_id=clicks,
        auto_offset_reset="earliest",
        ack_policy=AckPolicy.NACK_ON_ERROR,  # the offset is committed after the click was passed on
    )
    async def pass_on(message: KafkaMessage) -> None:
        try:
            click = Click.model_validate_json(message.body)
        except ValidationError:
            await odd.publish(message.body)
        else:
            await clean.publish(Click(user=click.user.lower(), page=click.page.lower()))

    return FastStream(broker)


app = make_app(os.environ.get("SERVERS", "127.0.0.1:9092"))
