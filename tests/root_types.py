"""What type checkers see of the root: `make check` fails here if a name that is loaded lazily has no type."""

from pathlib import Path
from typing import assert_type

import exacta
from exacta.config.errors import ConfigurationError
from exacta.databases.two_phase import TwoPhase
from exacta.server.errors import ServerError
from exacta.testing import Broker, Fault, Record
from exacta.transform.aio import AsyncExactlyOnce
from exacta.transform.recognition import AsyncConsumer


class _Getting:
    def getmany(self, *partitions: object, **options: object) -> object:
        """Return nothing."""


def check() -> None:
    """Do nothing at run time that is worth a call."""
    assert_type(exacta.Broker(), Broker)
    assert_type(exacta.Broker().records("orders"), list[Record])
    assert_type(exacta.Broker().faults.drop_answer("EndTxn"), Fault)
    assert_type(exacta.ServerError(), ServerError)
    both = exacta.two_phase("127.0.0.1:9092", transactional_id="a", database=exacta.Sqlite("a.db"))
    assert_type(both, TwoPhase)
    assert_type(exacta.ConfigurationError(), ConfigurationError)
    consumer: AsyncConsumer = _Getting()
    assert_type(exacta.exactly_once(consumer, lambda partition: partition), AsyncExactlyOnce)
    assert_type(exacta.__version__, str)
    assert_type(exacta.join_transaction("localhost:9092", "x", (0, 1)), tuple[int, int])
    assert_type(exacta.spark.use_bundled_java(), Path)
