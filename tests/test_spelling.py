"""The question after the name that was meant."""

import pytest

from exacta.spelling import did_you_mean, is_misspelt

KNOWN = ["kafka.num.partitions", "kafka.num.replicas", "kafka.linger.ms"]


def stem(name):
    return name.lower().removeprefix("kafka.")


@pytest.mark.parametrize(
    ("name", "settings", "question"),
    [
        ("kafka.num.partition", {}, "did you mean kafka.num.partitions?"),
        ("kafka.num.partition", {"quote": "'"}, "did you mean 'kafka.num.partitions'?"),
        ("kafka.num.", {"most": 2}, "did you mean kafka.num.replicas or kafka.num.partitions?"),
        ("NUM.partitions", {"key": stem}, "did you mean kafka.num.partitions?"),
        ("kafka.timer", {}, "did you mean kafka.linger.ms?"),
        ("kafka.timer", {"key": stem}, ""),  # without what all have in common it is like none of them
        ("kafka.num.partition", {"least_ratio": 0.99}, ""),
    ],
)
def test_the_name_that_was_meant(name, settings, question):
    assert did_you_mean(name, KNOWN, **settings) == question


@pytest.mark.parametrize(
    ("name", "answer"),
    [("log.retention.sm", True), ("log.dir.s", True), ("log.retenton.ms", True), ("log.redetention.ms", False)],
)
def test_a_name_with_a_wrong_letter_is_misspelt(name, answer):
    assert any(is_misspelt(name, known) for known in ("log.retention.ms", "log.dirs")) is answer
