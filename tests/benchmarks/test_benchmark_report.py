"""Verdicts and tables of the benchmark."""

import pytest
from benchmarks import report
from benchmarks.bounds import BOUNDS, BROKER_BOUNDS, Bound, Measure, Verdict, judge, ratio
from benchmarks.cases import CASES
from benchmarks.figures import COST, CaseFailure, Figure, Results, summarise
from benchmarks.session import Scale

CIRCUMSTANCES = report.Circumstances(
    date="2026-11-21 12:00 UTC",
    command="python -m benchmarks --beside-kafka",
    versions=["Exacta 1", "Kafka 2"],
    machine=["2 CPUs"],
    rounds=3,
    scale=Scale(),
)


AIM = "aim ≥ 2.2 ×, then ≥ 2.8 ×"


def results_of(exacta, kafka, case="txn-1", name="txn/s"):
    results = Results(brokers=["Exacta", "Kafka"])
    for broker, values in (("Exacta", exacta), ("Kafka", kafka)):
        for value in values:
            results.add(broker, Figure(case=case, name=name, value=value))
    return results


@pytest.mark.parametrize(
    ("measure", "value", "subject", "reference", "expected"),
    [
        (Measure.RATIO_AT_LEAST, 2, 200.0, 100.0, Verdict.OK),
        (Measure.RATIO_AT_LEAST, 2, 199.0, 100.0, Verdict.NOT),
        (Measure.RATIO_AT_LEAST, 2, 200.0, None, Verdict.UNKNOWN),
        (Measure.RATIO_AT_LEAST, 2, None, 100.0, Verdict.UNKNOWN),
        (Measure.RATIO_AT_LEAST, 2, 200.0, 0.0, Verdict.UNKNOWN),
        (Measure.RATIO_AT_MOST, 0.25, 25.0, 100.0, Verdict.OK),
        (Measure.RATIO_AT_MOST, 0.25, 26.0, 100.0, Verdict.NOT),
        (Measure.VALUE_AT_MOST, 80, 80.0, None, Verdict.OK),
        (Measure.VALUE_AT_MOST, 80, 80.1, None, Verdict.NOT),
        (Measure.VALUE_AT_MOST, 80, None, 10.0, Verdict.UNKNOWN),
    ],
)
def test_judge(measure, value, subject, reference, expected):
    given = [None if each is None else summarise([each]) for each in (subject, reference)]
    assert judge(Bound(measure=measure, value=value), *given) is expected


def test_ratio_is_that_of_medians():
    assert ratio(summarise([1.0, 4.0, 100.0]), summarise([1.0, 2.0, 3.0])) == 2.0


def test_every_bound_belongs_to_a_case():
    assert {case.split()[0] for case, _ in BROKER_BOUNDS} <= set(CASES)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (0.0837, "0.0837"), (1.5, "1.50"), (12.34, "12.3"), (99.95, "100.0"), (1234567.8, "1,234,568")],
)
def test_number(value, text):
    assert report.number(value) == text


def test_result_table_shows_ratio_bound_and_verdict():
    results = results_of([400.0, 500.0, 450.0], [200.0, 100.0, 300.0])
    *_, row = report.result_table(results).splitlines()
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["txn-1", "txn/s", "450 (400–500)", "200 (100–300)", "2.25", AIM, "ok"]
    assert report.missed_lines(results) == []


def test_an_aim_that_is_not_reached_is_shown_and_fails_no_run():
    results = results_of([100.0], [200.0])
    assert f"| {AIM} | not " in report.result_table(results)
    assert report.missed_lines(results) == ["aim not reached: txn-1, txn/s"]
    assert not report.has_failed(results)


def test_a_requirement_that_is_missed_is_shown_and_fails_the_run():
    results = results_of([71.0], [400.0], "idle-memory", "RSS MB")
    assert "| required ≤ 70 | not " in report.result_table(results)
    assert report.missed_lines(results) == ["not met: idle-memory, RSS MB"]
    assert report.has_failed(results)


def test_whatever_the_machine_decides_as_well_is_an_aim():
    required = {key for key, bound in BOUNDS.items() if bound.required}
    assert {name for _, name in required} == {"RSS MB"}
    with pytest.raises(AssertionError):
        Bound(measure=Measure.RATIO_AT_LEAST, value=2, required=True)


def test_what_kafka_could_not_do_is_unknown_not_met():
    results = results_of([400.0], [])
    *_, row = report.result_table(results).splitlines()
    assert [cell.strip() for cell in row.strip("|").split("|")][3:] == ["–", "–", AIM, "–"]
    assert report.missed_lines(results) == []


def test_table_columns_line_up():
    lines = report.table(["a", "bb"], [["1", "2"], ["333", "4"]]).splitlines()
    assert lines == ["| a   | bb |", "|-----|----|", "| 1   | 2  |", "| 333 | 4  |"]


def test_cost_table_names_the_client_where_it_was_the_limit():
    results = Results(brokers=["Exacta", "Kafka"])
    for broker, share in (("Exacta", 0.95), ("Kafka", 0.5)):
        results.add(broker, Figure(case="bulk", name=report.BUSIEST_THREAD, value=share, kind=COST))
    _, _, exacta, kafka = report.cost_table(results).splitlines()
    assert exacta.endswith("| client |")
    assert not kafka.endswith("| client |")


def test_markdown_holds_circumstances_tables_and_failures():
    results = results_of([400.0], [200.0])
    results.sync_latencies_ms += [0.1, 0.3, 0.2]
    results.failures.append(CaseFailure(broker="Kafka", case="ctp-100", round_number=2, reason="Boom: no"))
    text = report.markdown(results, CIRCUMSTANCES)
    assert text.startswith("# Benchmark: Exacta beside Kafka\n")
    assert "`python -m benchmarks --beside-kafka`: 3 rounds" in text
    assert "- fdatasync of a 4 KB append, p50 before each turn: 0.2 (0.1–0.3) ms" in text
    assert "- ctp-100 with Kafka, round 2: Boom: no" in text
    assert report.result_table(results) in text
    assert "## Costs" not in text
