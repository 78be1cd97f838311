"""The flights example, as its reader would run it: killed once in the middle, and equal to pandas to the row."""

import pytest
from examples.flights import verify
from examples.flights.expected import expected_delays, expected_flights_with_weather

from tests.spark.quick_java import quick_spark_environment


def test_the_input_has_what_the_example_is_about() -> None:
    """Windows that are not final, flights whose weather never came (final and not), and late flights to drop."""
    flights, weather = verify.read_input()
    delays, joined = expected_delays(flights), expected_flights_with_weather(flights, weather)
    assert 0 < delays["flights"].sum() < len(flights) - verify.LATE
    assert joined["visib"].isna().sum() > 0
    assert 0 < len(joined) < len(flights)
    last_final = delays["begin"].max()
    assert (flights.head(verify.LATE)["scheduled"] < last_final).all()


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_killed_in_the_middle_and_exact(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "spark_environment", quick_spark_environment)
    assert verify.main() == 0, capsys.readouterr().out
