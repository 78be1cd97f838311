"""The shop example, as its reader would run it: killed again and again, and its books equal to its messages."""

import pytest
from examples.shop import verify

from tests.databases.conftest import KILLS
from tests.databases.postgresql import a_server


@pytest.mark.timeout(300)
def test_killed_until_it_is_sold_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify.main([]) == 0, capsys.readouterr().out
    assert "in the books only: 0" in capsys.readouterr().out


@pytest.mark.skipif(not KILLS, reason="make test-with WHAT=two-phase runs it")
@pytest.mark.timeout(600)
def test_with_its_books_in_postgresql(capsys: pytest.CaptureFixture[str]) -> None:
    with a_server() as server:
        assert verify.main(["--database", server.conninfo]) == 0, capsys.readouterr().out
