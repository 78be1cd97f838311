"""The reference page is what the table says, and the names follow Prometheus's rules."""

import re

from exacta.metrics.families import FAMILIES, MetricKind

UNITS = ("seconds", "bytes", "records", "messages", "offsets", "events", "partitions", "connections", "info")


def test_names_follow_the_rules() -> None:
    for name, family in FAMILIES.items():
        assert re.fullmatch(r"exacta(_[a-z]+)+", name), name
        assert name.endswith("_total") is (family.kind is MetricKind.COUNTER), name
        assert "milliseconds" not in name
        if family.kind is MetricKind.HISTOGRAM:
            assert name.endswith(UNITS), name
    stems = {name.removesuffix("_total") for name in FAMILIES}  # in OpenMetrics this is the name of a counter
    assert len(stems) == len(FAMILIES)
