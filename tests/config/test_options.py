"""Options: names, values, files, and what a user is told who gets one wrong."""

import pytest

from exacta.config.configuration import Configuration
from exacta.config.errors import ConfigurationError
from exacta.config.options import configure, options, parse_setting


def test_defaults() -> None:
    assert configure({}) == Configuration()


def test_names_have_dots_or_underscores_and_values_may_be_text() -> None:
    assert configure({"num.partitions": "3"}) == configure({"num_partitions": 3})
    assert configure({"auto.create.topics.enable": "FALSE"}).auto_create_topics_enable is False
    assert configure({"auto_create_topics_enable": False}).auto_create_topics_enable is False
    assert configure({"group.consumer.assignors": " range, uniform"}).limits().group_consumer_assignors == (
        "range",
        "uniform",
    )


def test_limits_reach_the_core() -> None:
    limits = configure({"transaction.max.timeout.ms": 5, "group.max.size": 2, "offset.metadata.max.bytes": 1}).limits()
    assert (limits.transaction_max_timeout_ms, limits.group_max_size, limits.offset_metadata_max_bytes) == (5, 2, 1)


def test_the_options_of_pulsars_outcomes_reach_the_core() -> None:
    outcome = "pulsar.transaction.outcome.retention"
    limits = configure({f"{outcome}.ms": 7, f"{outcome}.count": 3}).limits()
    assert (limits.ended_handle_retention_ms, limits.max_ended_handles) == (7, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num.partition": "1"}, "unknown option num.partition; did you mean num.partitions?"),
        ({"frobnicate": "1"}, "unknown option frobnicate"),
        (
            {"min.insync.replicas": "2"},
            "min.insync.replicas is a Kafka option that has no effect here: there is one replica",
        ),
        ({"num_io_threads": "8"}, "unknown option num_io_threads"),
        ({"num.partitions": "many"}, "num.partitions must be a whole number, not 'many'"),
        ({"num.partitions": 1.5}, "num.partitions must be a whole number, not 1.5"),
        ({"num.partitions": True}, "num.partitions must be a whole number, not True"),
        ({"num.partitions": "0"}, "num.partitions must be between 1 and 10000, not 0"),
        ({"auto.create.topics.enable": "maybe"}, "auto.create.topics.enable must be true or false, not 'maybe'"),
        (
            {"group.consumer.assignors": "uniform,uniform"},
            "group.consumer.assignors cannot be 'uniform,uniform': it is like uniform,range",
        ),
        ({"transaction.buffer": "aside"}, "transaction.buffer cannot be 'aside': it is marker or sidecar"),
        (
            {"group.min.session.timeout.ms": "9", "group.max.session.timeout.ms": "8"},
            "group.min.session.timeout.ms (9) must not be above group.max.session.timeout.ms (8)",
        ),
        (
            {"message.max.bytes": "4096", "socket.request.max.bytes": "2048"},
            "message.max.bytes (4096) must not be above socket.request.max.bytes (2048)",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        configure(settings)
    assert str(error.value) == message


def test_every_option_has_a_description_and_a_default_in_its_range() -> None:
    for option in options().values():
        assert option.description.endswith(".")
        if option.lowest is not None:
            assert option.highest is not None
            assert isinstance(option.default, int)
            assert option.lowest <= option.default <= option.highest


def test_settings_are_split_at_the_first_equals() -> None:
    assert parse_setting(" a = b=c ") == ("a", "b=c")
    for wrong in ("a", "=b", ""):
        with pytest.raises(ConfigurationError, match="expected key=value"):
            parse_setting(wrong)
