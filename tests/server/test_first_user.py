"""The first user: which start has a token, what the token is good for, and that it is gone with the user."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from exacta.cli.app import app
from exacta.client.errors import ClientError
from exacta.client.routing import Anyone, Client
from exacta.client.topic_administration import ask
from exacta.client.users import set_password
from exacta.config.options import configure
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.core.access.first_user import rules_of
from exacta.core.commands import AlterScramKeys, CreateAcls
from exacta.core.ids import PrincipalName
from exacta.core.values.acl import Acl, Operation
from exacta.front.doors import Door, Endpoint, TransportSecurity
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k29_describe_acls import DescribeAclsRequest
from exacta.security.first_user import FIRST_USER
from exacta.server.first_user import needs_first_user
from exacta.server.identity import TOKEN_FILE
from exacta.spark.options.properties import cluster_by
from tests.core.access.values import alteration
from tests.core.world import World
from tests.hidden import MARK, Hidden
from tests.server.test_server import Process

ON = {"authorizer.class.name": STANDARD_AUTHORIZER}
LOCAL = Endpoint("127.0.0.1", 0)
SASL = Door(front="kafka", name="SASL_PLAINTEXT", endpoint=LOCAL, login=True)
PLAIN = Door(front="kafka", name="PLAINTEXT", endpoint=LOCAL)
TLS = Door(front="kafka", name="SSL", endpoint=LOCAL, security=TransportSecurity.TLS)
BOTH = "SCRAM-SHA-512,OAUTHBEARER"


def rule(operation: Operation = Operation.ALTER, *, allows: bool = True) -> Acl:
    return replace(rules_of("alice")[0], operation=operation, allows=allows)


@pytest.mark.parametrize(
    ("options", "doors", "commands", "is_needed"),
    [
        (ON, [SASL], [], True),
        ({}, [SASL], [], False),
        (ON, [PLAIN], [], False),
        (ON, [SASL], [AlterScramKeys(alterations=(alteration("alice"),))], False),
        (ON | {"super.users": "User:alice"}, [SASL], [], True),
        (ON | {"super.users": "User:alice"}, [SASL, PLAIN], [], True),
        (ON | {"super.users": "User:ANONYMOUS"}, [SASL, PLAIN], [], False),
        (ON | {"super.users": "User:ANONYMOUS"}, [SASL], [], True),
        (ON | {"super.users": "User:alice"}, [SASL, TLS], [], True),
        (ON | {"super.users": "User:alice", "ssl.client.auth": "requested"}, [SASL, TLS], [], False),
        (ON | {"super.users": "User:alice"}, [SASL, replace(TLS, options={"ssl_client_auth": "required"})], [], False),
        (ON | {"sasl.enabled.mechanisms": "OAUTHBEARER"}, [SASL], [], False),
        (ON | {"sasl.enabled.mechanisms": BOTH}, [SASL], [], True),
        (ON | {"sasl.enabled.mechanisms": BOTH, "super.users": "User:alice"}, [SASL], [], False),
        (ON | {"sasl.enabled.mechanisms": BOTH}, [SASL], [CreateAcls(acls=(rule(),))], False),
        (ON | {"sasl.enabled.mechanisms": BOTH}, [SASL], [CreateAcls(acls=(rule(Operation.ALL),))], False),
        (ON | {"sasl.enabled.mechanisms": BOTH}, [SASL], [CreateAcls(acls=(rule(allows=False),))], True),
        (ON | {"sasl.enabled.mechanisms": BOTH}, [SASL], [CreateAcls(acls=(rule(Operation.DESCRIBE),))], True),
        (ON, [SASL], [CreateAcls(acls=rules_of("admin"))], True),
        (
            ON,
            [SASL, PLAIN],
            [CreateAcls(acls=(replace(rule(), principal=PrincipalName("User:*")),))],
            False,
        ),
    ],
)
def test_a_start_has_a_token_where_nobody_else_could_make_a_user(
    options: Mapping[str, Any], doors: list[Door], commands: list[Any], is_needed: bool
) -> None:
    world = World()
    for command in commands:
        world.send(command)
    assert needs_first_user(configure(options), world.state, doors) is is_needed


class Served(Process):
    """A server that lets in by a login only, in a process."""

    def __init__(self, data: Path, config: Path, **options: str) -> None:
        lines = {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "connection.failed.authentication.delay.ms": "0",
            **options,
        }
        config.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        super().__init__(data, "--config", str(config), "--log-level", "debug", listen=None)
        self.token = data / TOKEN_FILE
        self._secret = Hidden([self.token.read_text().strip()] if self.token.exists() else [MARK])

    def end(self, number: int | None = None) -> tuple[int, str]:
        """End it; neither its log nor any other file shows the token."""
        code, errors = super().end(number)
        files = [each for each in self.token.parent.rglob("*") if each.is_file() and each != self.token]
        assert self._secret.found_in(errors) is None
        assert [each for each in files if self._secret.found_in(each.read_bytes())] == []
        return code, errors

    def client(self, user: str, password: str, mechanism: str = "SCRAM-SHA-512") -> Client:
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        jaas = f'org.apache.kafka.common.security.{module} required username="{user}" password="{password}";'
        properties = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": jaas,
        }
        cluster, _ = cluster_by("{}:{}".format(*self.address), properties, client_id="test")
        return Client(cluster, call_timeout_ms=2_000)

    def by_token(self, **more: str) -> Client:
        return self.client(FIRST_USER.name, self.token.read_text().strip(), **more)


Start = Callable[..., Served]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start servers over one data directory; whatever a test leaves behind is ended."""
    started: list[Served] = []

    def started_now(**options: str) -> Served:
        started.append(Served(tmp_path / "data", tmp_path / "server.properties", **options))
        return started[-1]

    yield started_now
    for each in started:
        if each.process.returncode is None:
            each.end(9)


def run(served: Served, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, [*arguments, "-b", "{}:{}".format(*served.address)])
    return result.exit_code, result.output


def test_the_first_user_is_made_by_the_command_and_may_do_everything(start: Start, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("pencil\n")
    served = start()
    assert served.process.stdout is not None
    told = served.process.stdout.readline()
    file = (tmp_path / "data" / TOKEN_FILE).absolute()
    assert told == f"exacta: there is no user yet: exacta users add NAME --first-user-token {file}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    token = file.read_text()
    add = ("users", "add", "admin", "--password-file", str(tmp_path / "password"), "--first-user-token", str(file))
    assert run(served, *add) == (0, "user admin logs in by SCRAM-SHA-512\n")
    assert not file.exists()
    with served.client("admin", "pencil") as admin:
        set_password(admin, "alice", "pen", "SCRAM-SHA-512")
    with (
        pytest.raises(ClientError, match="Authentication failed"),
        served.client(FIRST_USER.name, token.strip()) as late,
    ):
        set_password(late, "mallory", "pen", "SCRAM-SHA-512")
    _, errors = served.end(15)
    assert f"FirstUser:{FIRST_USER.name} logged in by SCRAM-SHA-512" in errors
    again = start()
    assert again.client("admin", "pencil").__enter__() is not None
    assert not file.exists()
    again.end(15)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_any_client_makes_the_first_user_and_nothing_else_by_the_token(start: Start, mechanism: str) -> None:
    mechanisms = "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN"
    served = start(**{"sasl.enabled.mechanisms": mechanisms})
    for request, what in (
        (InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000), "producing"),
        (
            DescribeAclsRequest(
                resource_type_filter=1,
                resource_name_filter=None,
                pattern_type_filter=1,
                principal_filter=None,
                host_filter=None,
                operation=1,
                permission_type=1,
            ),
            "looking",
        ),
    ):
        with served.by_token(mechanism=mechanism) as client, pytest.raises(ClientError):
            ask(client, Anyone(), request, what=what, entries=lambda reply: [reply])
    with served.by_token(mechanism=mechanism) as client, served.by_token() as other:
        with pytest.raises(ClientError, match="UNACCEPTABLE_CREDENTIAL"):
            set_password(client, FIRST_USER.name, "pen", "SCRAM-SHA-512")
        set_password(client, "admin", "pen", "SCRAM-SHA-512")
        for late, refusal in ((client, "CLUSTER_AUTHORIZATION_FAILED"), (other, "Authentication failed")):
            with pytest.raises(ClientError, match=refusal):
                set_password(late, "mallory", "pen", "SCRAM-SHA-512")
    _, errors = served.end(15)
    assert "and may make the first user only" in errors


def test_after_a_crash_between_the_user_and_the_file_the_log_decides(start: Start) -> None:
    served = start()
    token = served.token.read_text()
    with served.by_token() as client:
        set_password(client, "admin", "pen", "SCRAM-SHA-512")
    served.end(9)
    served.token.write_text(token)  # as a crash would have left it
    again = start()
    assert not again.token.exists()
    with (
        pytest.raises(ClientError, match="Authentication failed"),
        again.client(FIRST_USER.name, token.strip()) as client,
    ):
        set_password(client, "mallory", "pen", "SCRAM-SHA-512")
    with again.client("admin", "pen") as admin:
        set_password(admin, "bob", "pen", "SCRAM-SHA-512")
    again.end(15)


def test_each_start_has_a_token_of_its_own(start: Start) -> None:
    served = start()
    old = served.token.read_text()
    served.end(9)
    again = start()
    assert again.token.read_text() != old
    with (
        pytest.raises(ClientError, match="Authentication failed"),
        again.client(FIRST_USER.name, old.strip()) as client,
    ):
        set_password(client, "mallory", "pen", "SCRAM-SHA-512")
    again.end(15)
