"""The alert rules and the dashboard of `monitoring/` name metrics and labels that there are."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from exacta.metrics.families import FAMILIES, Family, MetricKind

FOLDER = Path(__file__).parents[2] / "monitoring"
ALERTS = FOLDER / "alerts.yml"

OF_EVERY_TARGET = {"instance", "job"}
OF_EVERY_PROCESS = {"process_resident_memory_bytes", "process_cpu_seconds_total"}
_NAME = re.compile(r"\b((?:exacta|process)_[a-z_]+|up)\b(?:\{([^}]*)\})?")


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    return list(group["rules"])


def panels() -> list[dict[str, Any]]:
    dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    """Yield each expression with the text that shows what it finds."""
    for rule in rules():
        yield rule["expr"], " ".join(rule["annotations"].values())
    for panel in panels():
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]


def family_of(name: str) -> Family | None:
    """Return the metric that a series of this name belongs to; None: no metric of the table is meant by that."""
    if name in FAMILIES:
        return FAMILIES[name] if FAMILIES[name].kind is not MetricKind.HISTOGRAM else None
    histogram = FAMILIES.get(re.sub("_(bucket|sum|count)$", "", name))
    return histogram if histogram is not None and histogram.kind is MetricKind.HISTOGRAM else None


def test_every_metric_and_label_is_in_the_table() -> None:
    for expression, shown in expressions():
        known = set(OF_EVERY_TARGET)
        for name, selector in _NAME.findall(expression):
            if name == "up" or name in OF_EVERY_PROCESS:
                continue
            family = family_of(name)
            assert family is not None, f"{name} in {expression}"
            labels = {*family.labels, *OF_EVERY_TARGET} | ({"le"} if name.endswith("_bucket") else set())
            assert set(re.findall(r"(\w+)[=!]", selector)) <= labels, expression
            known |= labels
        for grouped in re.findall(r"\bby \(([^)]*)\)", expression):
            assert set(re.split(r",\s*", grouped)) <= known, expression
        named = re.findall(r"\{\{ *(?:\$labels\.)?(\w+) *\}\}", shown)
        assert set(named) <= known, shown


def test_a_counter_is_only_shown_by_how_it_grows() -> None:
    for expression, _ in expressions():
        for name, _ in _NAME.findall(expression):
            grows = name.endswith(("_total", "_bucket", "_count")) and not expression.endswith(" > 0")
            assert not grows or re.search(rf"(rate|increase)\({name}\b", expression), expression


def test_every_alert_says_what_has_happened_and_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names) > 10
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert {"summary", "description"} == set(rule["annotations"])


def test_panels_do_not_lie_on_each_other() -> None:
    covered = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels())
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(covered)) == len(covered)
    assert max(x for x, _ in covered) < 24
