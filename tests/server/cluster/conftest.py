"""The end of the PostgreSQL that the tests of this folder share."""

from collections.abc import Iterator

import pytest

from tests.adapters import real_postgres


@pytest.fixture(scope="package", autouse=True)
def postgres_ends() -> Iterator[None]:
    yield
    real_postgres.end()
