"""The metrics of what Pulsar's clients do: backlog of a subscription, requests by command, bytes in and out."""

import exacta
from tests.metrics.test_exposition import Scraped
from tests.pulsar.wire import client
from tests.waiting import wait_until


def test_the_backlog_of_a_subscription_and_its_traffic(broker: exacta.Broker) -> None:
    with client(broker.pulsar_url) as opened:
        consumer = opened.subscribe("orders", "billing")
        producer = opened.create_producer("orders", batching_enabled=False)
        for _ in range(5):
            producer.send(b"x" * 100)
        for _ in range(2):
            consumer.acknowledge(consumer.receive(20_000))
        opened.subscribe("orders", "shipping")
        backlog = "exacta_subscription_backlog_messages", "billing", "orders"
        wait_until(lambda: Scraped(broker.web_url)[backlog] == 3, 20)  # the client gathers what it acknowledges
        scraped = Scraped(broker.web_url)
        assert scraped["exacta_subscription_backlog_messages", "orders", "shipping"] == 0
        assert scraped["exacta_subscriptions"] == 2
        assert scraped["exacta_lag_uncounted_partitions"] == 0
        assert scraped["exacta_topic_in_records_total", "orders"] == 5
        assert scraped["exacta_topic_out_bytes_total", "orders"] >= 500
        assert scraped["exacta_request_duration_seconds_count", "SEND", "pulsar"] == 5
        assert scraped["exacta_request_bytes_total", "SEND", "pulsar"] > 500
        assert scraped["exacta_connections", "pulsar"] >= 1
