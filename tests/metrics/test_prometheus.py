"""A real Prometheus scrapes the broker, and takes the alert rules and every expression of the dashboard.

It is skipped where there is no Prometheus; `make test-with WHAT=prometheus` gets one from Debian's package.
"""

import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.metrics.prometheus import programs, scraping
from tests.metrics.test_exposition import Served
from tests.metrics.test_monitoring_files import ALERTS, panels, rules
from tests.waiting import wait_until

PROGRAMS = programs()
pytestmark = pytest.mark.skipif(PROGRAMS is None, reason="no Prometheus: `make test-with WHAT=prometheus` gets one")


def test_the_rules_are_valid() -> None:
    assert PROGRAMS is not None
    subprocess.run([PROGRAMS / "promtool", "check", "rules", ALERTS], check=True)


def test_it_scrapes_and_takes_rules_and_dashboard(tmp_path: Path) -> None:
    assert PROGRAMS is not None
    server = Served(tmp_path / "data")
    try:
        server.write(server.producer("t"), "orders", 3)
        with urllib.request.urlopen(f"{server.url}/metrics", timeout=30) as answer:
            subprocess.run([PROGRAMS / "promtool", "check", "metrics"], input=answer.read(), check=True)
        with scraping(PROGRAMS, tmp_path, server.url.removeprefix("http://"), ALERTS) as prometheus:
            records = 'exacta_topic_in_records_total{topic="orders"}'
            wait_until(lambda: prometheus.value(records) == 3, 30, "the records were not scraped")
            assert prometheus.value('exacta_topic_transactions_open{topic="orders"}') == 1
            wait_until(lambda: prometheus.value("increase(process_cpu_seconds_total[1m])") is not None, 30)
            for panel in panels():
                for target in panel["targets"]:
                    expression = target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")
                    prometheus.ask("query", query=expression)
            [group] = prometheus.ask("rules")["groups"]
            assert [rule["name"] for rule in group["rules"]] == [rule["alert"] for rule in rules()]
            assert not [rule["lastError"] for rule in group["rules"] if rule.get("lastError")]
    finally:
        server.clean_up()
