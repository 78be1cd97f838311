"""kafka-acls and kafka-configs: an administrator makes rules and users, and they hold for a client that logs in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.brokers import ON_KAFKA
from tests.server.served import Served
from tests.tools.bench import Bench
from tests.tools.toolbox import Toolbox

pytestmark = pytest.mark.skipif(ON_KAFKA, reason="it needs a broker whose clients log in, which is started here")
USERS = ("--entity-type", "users")
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A broker at which `local` may do everything, and others log in."""
    with Served(tmp_path_factory.mktemp("served") / "data") as running:
        yield running


@pytest.fixture
def bench(served: Served, tools: Toolbox) -> Iterator[Bench]:
    """The tools, as the administrator has them."""
    bench = Bench(served.local, tools)
    yield bench
    bench.close_clients()


def user(bench: Bench, mechanisms: tuple[str, ...] = MECHANISMS, password: str = "a secret") -> str:
    """Make a user."""
    name = bench.name("user")
    for mechanism in mechanisms:  # one at a time: Apache Kafka refuses two changes of one user in a request
        added = f"{mechanism}=[iterations=4096,password={password}]"
        done = bench.good("kafka-configs", "--alter", *USERS, "--entity-name", name, "--add-config", added)
        assert done.lines == [f"Completed updating config for user {name}."]
    return name


def credentials(bench: Bench, name: str) -> list[str]:
    """Return what the tool shows of a user."""
    return bench.good("kafka-configs", "--describe", *USERS, "--entity-name", name).lines


def properties(folder: Path, name: str, mechanism: str, password: str = "a secret") -> str:
    """Write what a tool needs to log in; return the file's name."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    path = folder / "client.properties"
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nrequest.timeout.ms=10000\n"
        f'sasl.jaas.config={module} required username="{name}" password="{password}";\n'
    )
    return str(path)


def test_users_are_added_changed_shown_and_deleted(bench: Bench) -> None:
    name = user(bench)
    both = ", ".join(f"{each}=iterations=4096" for each in MECHANISMS)
    assert credentials(bench, name) == [f"SCRAM credential configs for user-principal '{name}' are {both}"]
    changed = "SCRAM-SHA-256=[iterations=8192,password=another]"
    bench.good("kafka-configs", "--alter", *USERS, "--entity-name", name, "--add-config", changed)
    assert "SCRAM-SHA-256=iterations=8192" in credentials(bench, name)[0]
    for mechanism in MECHANISMS:
        bench.good("kafka-configs", "--alter", *USERS, "--entity-name", name, "--delete-config", mechanism)
    assert credentials(bench, name) == []
    gone = bench.bad("kafka-configs", "--alter", *USERS, "--entity-name", name, "--delete-config", MECHANISMS[0])
    assert "ResourceNotFoundException" in gone


def test_all_users_are_shown(bench: Bench) -> None:
    names = [user(bench, MECHANISMS[:1]) for _ in range(2)]
    shown = bench.good("kafka-configs", "--describe", *USERS).lines
    for name in names:
        assert f"SCRAM credential configs for user-principal '{name}' are SCRAM-SHA-256=iterations=4096" in shown


def test_too_few_iterations_are_refused(bench: Bench) -> None:
    added = "SCRAM-SHA-256=[iterations=100,password=x]"
    refused = bench.run("kafka-configs", "--alter", *USERS, "--entity-name", "u", "--add-config", added)
    assert refused.status == 1
    assert "4096" in refused.out + refused.err


def test_rules_are_added_listed_and_removed(bench: Bench) -> None:
    topic, group = bench.topic(), bench.name("group")
    of_alice = ("--allow-principal", "User:alice", "--topic", topic)
    bench.good("kafka-acls", "--add", *of_alice, "--consumer", "--group", group)
    bench.good("kafka-acls", "--add", "--deny-principal", "User:bob", "--operation", "Write", "--topic", topic)
    bench.good(
        "kafka-acls", "--add", *of_alice[:2], "--topic", "pre-", "--resource-pattern-type", "prefixed", "--producer"
    )
    shown = bench.good("kafka-acls", "--list", "--topic", topic).out
    for operation in ("READ", "DESCRIBE"):
        assert f"(principal=User:alice, host=*, operation={operation}, permissionType=ALLOW)" in shown
    assert "(principal=User:bob, host=*, operation=WRITE, permissionType=DENY)" in shown
    assert f"name={group}" in bench.good("kafka-acls", "--list", "--group", group).out
    matching = bench.good("kafka-acls", "--list", "--topic", "pre-1", "--resource-pattern-type", "match").out
    assert "patternType=PREFIXED" in matching
    bench.good("kafka-acls", "--remove", "--force", *of_alice, "--operation", "Read")
    shown = bench.good("kafka-acls", "--list", "--topic", topic).out
    assert "operation=READ" not in shown
    assert "operation=DESCRIBE" in shown
    bench.good("kafka-acls", "--remove", "--force", "--topic", topic)
    assert bench.good("kafka-acls", "--list", "--topic", topic).lines == []


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_of_the_tools_does_what_a_rule_of_the_tools_allows(
    bench: Bench, served: Served, tools: Toolbox, folder: Path, mechanism: str
) -> None:
    name, topic, other = user(bench), bench.topic(), bench.topic()
    bench.good("kafka-acls", "--add", "--allow-principal", f"User:{name}", "--operation", "Describe", "--topic", topic)

    def listed(password: str = "a secret") -> str:
        config = properties(folder, name, mechanism, password)
        done = tools.run("kafka-topics", "--bootstrap-server", served.secured, "--command-config", config, "--list")
        return done.out + done.err

    told = listed()
    assert topic in told.split()
    assert other not in told
    assert "Authentication failed: invalid credentials" in listed("a guess")


def test_who_may_not_is_told_so(bench: Bench, served: Served, tools: Toolbox, folder: Path) -> None:
    config = properties(folder, user(bench), MECHANISMS[0])
    secured = ("--bootstrap-server", served.secured, "--command-config", config)
    for tool, *words in (
        ("kafka-acls", "--add", "--allow-principal", "User:mallory", "--operation", "All", "--topic", "*"),
        ("kafka-acls", "--list"),
        ("kafka-configs", "--describe", *USERS),
    ):
        done = tools.run(tool, *secured, *words)
        assert "ClusterAuthorizationException" in done.out + done.err, tool
