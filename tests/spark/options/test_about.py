"""The page of options is what the tables in the code say."""

import pytest

from exacta.spark.options.connection import CONNECTION
from exacta.spark.options.foreach_batch import FOREACH_BATCH
from exacta.spark.options.sink import SINK
from exacta.spark.options.source import SOURCE


@pytest.mark.parametrize(
    "option", dict.fromkeys([*CONNECTION, *SOURCE, *SINK, *FOREACH_BATCH]), ids=lambda option: option.name
)
def test_an_option_says_what_it_is_about(option) -> None:
    """The text stands in a table's cell, so it is one line."""
    assert option.about
    assert "\n" not in option.about + option.default
