"""The benchmark's command line: what is refused, and what a report shows of it."""

import pytest
from benchmarks import __main__ as command_line
from benchmarks.cases import CASES
from benchmarks.figures import Figure, Results


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--rounds", "0"], "--rounds must be at least 1"),
        (["--warm-up", "0"], "--warm-up must be above 0"),
        (["--seconds", "0"], "--seconds must be above 0"),
        (["--bootstrap", "localhost"], "--bootstrap must be HOST:PORT"),
        (["--case", "no-such"], "invalid choice"),
        (["--beside-kafka", "--bootstrap", "h:1"], "not allowed with"),
    ],
)
def test_wrong_options_are_refused_in_a_line(arguments, reason, capsys):
    with pytest.raises(SystemExit) as ended:
        command_line.main(arguments)
    assert ended.value.code == 2
    assert reason in capsys.readouterr().err


def test_list_names_every_case(capsys):
    assert command_line.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(CASES)


@pytest.mark.parametrize(
    ("arguments", "warm_up_s", "name"),
    [
        ([], 1, "exacta"),
        (["--beside-kafka"], 15, "beside-kafka"),
        (["--beside-kafka", "--warm-up", "60"], 60, "beside-kafka"),
        (["--bootstrap", "h:1"], 1, "bootstrap"),
        (["--case", "txn-1"], 1, None),
        (["--case", "txn-1", "--name", "one"], 1, "one"),
    ],
)
def test_defaults_depend_on_what_is_measured(arguments, warm_up_s, name):
    options = command_line.parser().parse_args(arguments)
    assert command_line._warm_up_s(options) == warm_up_s
    assert command_line._report_name(options) == name


@pytest.mark.parametrize("work", [["--work", "/secret"], ["--work=/secret"]])
def test_reports_do_not_tell_where_the_data_lay(work):
    assert command_line._without_paths(["--rounds", "1", *work, "--case", "txn-1"]) == [
        "--rounds",
        "1",
        "--case",
        "txn-1",
    ]


@pytest.mark.parametrize(
    ("case", "name", "values", "said", "code"),
    [
        ("txn-1", "txn/s", (100.0, 200.0), "aim not reached: txn-1, txn/s", 0),
        ("txn-1", "txn/s", (500.0, 200.0), "", 0),
        ("idle-memory", "RSS MB", (71.0, 400.0), "not met: idle-memory, RSS MB", 1),
    ],
)
def test_only_a_missed_requirement_fails_the_run(case, name, values, said, code, monkeypatch, capsys, tmp_path):
    results = Results(brokers=["Exacta", "Kafka"])
    for broker, value in zip(results.brokers, values, strict=True):
        results.add(broker, Figure(case=case, name=name, value=value))
    monkeypatch.setattr(command_line, "run", lambda *_: results)
    assert command_line.main(["--case", case, "--work", str(tmp_path)]) == code
    shown = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("warning: ")]
    assert shown == ([said] if said else [])
