"""The audit log: one line for each thing that happened, whatever a client calls itself."""

import logging

import pytest

from exacta.security import audit


def test_what_a_client_sends_stays_on_its_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "exacta.audit")
    user = "eve\nUser:root logged in\x1b[2J" + "x" * 1_000
    audit.login_refused(user, "PLAIN", "127.0.0.1:1", "SASL", "its password is wrong")
    [record] = caplog.records
    line = record.getMessage()
    assert line.isprintable()
    assert "eve\\nUser:root logged in\\x1b[2J" in line
    assert len(line) < 400
