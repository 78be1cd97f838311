"""The rest of the page: its example gives the rights of the row that it is about, and its prefixes are the log's."""

import re
import shlex
from pathlib import Path

import pytest

from exacta.client.access_rules import Wanted, list_rules
from exacta.protocol.pulsar.topic_names import parse_topic_name
from exacta.pulsar.topic_names import kafka_name
from tests.cli.conftest import Commands
from tests.rights.page import PAGE, rows
from tests.rights.place import PRINCIPAL, furnished

TEXT = PAGE.read_text(encoding="utf-8")
NAMES = re.findall(r"^\| `persistent://(.+?)` \| `(.+?)` \|$", TEXT, re.MULTILINE)


def test_the_example_gives_the_rights_of_its_row(tmp_path: Path) -> None:
    [row] = [each for each in rows("Spark") if each.task == "a stream is written"]
    with furnished(tmp_path) as place, place.client() as client:
        run = Commands(place.bootstrap_servers)
        [example] = re.findall(r"^```bash\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
        for line in example.splitlines():
            run(*shlex.split(line)[1:])
        made = list_rules(client, Wanted(principal=PRINCIPAL))
    assert sorted(made) == sorted(each.rule() for each in row.needs)


def test_the_table_has_names_of_each_kind() -> None:
    assert len(NAMES) == 6
    assert "| all but `persistent://public/default/*` | `pulsar..*` |" in TEXT


@pytest.mark.parametrize(("pulsar", "rule"), NAMES)
def test_a_rule_is_about_the_topics_that_the_table_says(pulsar: str, rule: str) -> None:
    """A prefix has each topic of its tenant or namespace, and none of another whose name begins alike."""
    if not pulsar.endswith("*"):
        assert kafka_name(parse_topic_name(f"persistent://{pulsar}")) == rule
        return
    inside = pulsar.removesuffix("*")
    rest = "t" if inside.count("/") > 1 else "n/t"
    assert kafka_name(parse_topic_name(f"persistent://{inside}{rest}")).startswith(rule.removesuffix("*"))
    for more in ("-", "x", ".x", "_"):
        other = f"{inside.rstrip('/')}{more}/{rest}"
        assert not kafka_name(parse_topic_name(f"persistent://{other}")).startswith(rule.removesuffix("*"))
    assert not kafka_name(parse_topic_name("persistent://public/default/orders")).startswith("pulsar..")
