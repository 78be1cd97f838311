"""The root of the package: it has what the pages say, and loads it when it is asked for."""

import subprocess
import sys

import pytest

import exacta

TWO_PHASE = ["OutcomeUnknown", "PartlyCommitted", "Postgres", "Sqlite", "TakenOver", "TwoPhaseError", "two_phase"]
NAMES = [
    "Broker",
    "ClientError",
    "ConfigurationError",
    "ServerError",
    "NotJoined",
    "exactly_once",
    "join_transaction",
    "spark",
    *TWO_PHASE,
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_there_after_the_only_import(name: str) -> None:
    """In a process of its own: another test may have imported what the root has to load."""
    early = "{'exacta.databases', 'exacta.engine', 'exacta.spark', 'uvloop'} & set(sys.modules)"
    code = f"import exacta, sys; early = {early}; exacta.{name}; print(early)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_they_are_those_of_their_modules() -> None:
    from exacta import spark, testing
    from exacta.client import joint
    from exacta.client.errors import ClientError
    from exacta.config import errors as config_errors
    from exacta.databases import errors
    from exacta.databases.postgres import Postgres
    from exacta.databases.sqlite import Sqlite
    from exacta.databases.two_phase import two_phase
    from exacta.server import errors as server_errors
    from exacta.transform.recognition import exactly_once

    found = [getattr(exacta, name) for name in NAMES]
    of_databases = [
        errors.OutcomeUnknown,
        errors.PartlyCommitted,
        Postgres,
        Sqlite,
        errors.TakenOver,
        errors.TwoPhaseError,
        two_phase,
    ]
    assert found == [
        testing.Broker,
        ClientError,
        config_errors.ConfigurationError,
        server_errors.ServerError,
        joint.NotJoined,
        exactly_once,
        joint.join_transaction,
        spark,
        *of_databases,
    ]


def test_a_transaction_over_log_and_database_loads_neither_engine_nor_driver() -> None:
    late = "{'exacta.engine', 'exacta.spark', 'psycopg', 'uvloop'} & set(sys.modules)"
    code = f"import exacta, sys; exacta.two_phase; exacta.Sqlite; exacta.Postgres; print({late})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_they_are_listed() -> None:
    assert {*NAMES, "__version__"} <= set(dir(exacta))
    assert {*NAMES, "__version__"} == set(exacta.__all__)


def test_what_is_not_there_is_told() -> None:
    with pytest.raises(AttributeError, match="module 'exacta' has no attribute 'Brokre'"):
        _ = exacta.Brokre
