"""The lines of a start about options that were set at run time."""

import logging

import pytest

from exacta.config.options import configure
from exacta.server.run_time_options import tell_of_options_set_at_run_time


@pytest.mark.parametrize(
    ("configs", "warnings"),
    [
        ({}, []),
        ({"": {"message.max.bytes": "1500"}, "0": {"log.retention.ms": "5"}}, []),
        ({"7": {"message.max.bytes": "3000"}}, []),
        (
            {"": {"message.max.bytes": "3000"}},
            [
                "what was set at run time does not go with the options of this start: message.max.bytes (3000) must "
                "not be above socket.request.max.bytes (2000). exacta config set changes it, and exacta serve "
                "--drop-run-time-options drops it"
            ],
        ),
        (
            {"0": {"log.retention.ms": "long", "num.partitions": "2"}},
            [
                "log.retention.ms=long was set at run time, and is no value of an option here: it is passed over",
                "num.partitions=2 was set at run time, and is no value of an option here: it is passed over",
            ],
        ),
    ],
)
def test_what_does_not_go_with_this_start_is_told(
    caplog: pytest.LogCaptureFixture, configs: dict[str, dict[str, str]], warnings: list[str]
) -> None:
    started_with = configure({"socket.request.max.bytes": 2000, "message.max.bytes": 1000})
    with caplog.at_level(logging.INFO, "exacta.server"):
        tell_of_options_set_at_run_time(started_with, configs)
    assert [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING] == warnings
    told = [each.getMessage() for each in caplog.records if each.levelno == logging.INFO]
    assert len(told) == len(configs)
