"""Random access rules, and random questions: the core answers as Apache Kafka's own `StandardAuthorizer`.

Names that begin with `*`, or with a character that sorts before it, are left out. Kafka passes over the rules for `*`
there, and its search may not end (decision 0065).
"""

import random
import subprocess
from pathlib import Path

from benchmarks.kafka.distribution import fetch

from exacta.core.access.authorizing import allows, allows_any
from exacta.core.commands import CreateAcls
from exacta.core.ids import PrincipalName
from exacta.core.values.acl import Acl, Operation, Pattern, ResourceKind
from tests.core.world import World
from tests.differential.agree import SEED, SEQUENCES, marks

pytestmark = marks

QUESTIONS = 25
KINDS = (ResourceKind.TOPIC, ResourceKind.GROUP)
NAMES = ("*", "a", "ab", "abc", "b")
HOSTS = ("10.0.0.1", "10.0.0.2")
PRINCIPALS = tuple(PrincipalName(each) for each in ("User:alice", "User:bob", "Group:alice"))
OPERATIONS = tuple(each for each in Operation if each is not Operation.ALL)


def rules(chance: random.Random) -> tuple[Acl, ...]:
    return tuple(
        {
            Acl(
                chance.choice(KINDS),
                chance.choice(NAMES),
                chance.choice((Pattern.LITERAL, Pattern.PREFIXED)),
                chance.choice((*PRINCIPALS, PrincipalName("User:*"))),
                chance.choice(("*", *HOSTS)),
                chance.choice(tuple(Operation)),
                chance.random() < 0.7,
            ): None
            for _ in range(chance.randint(0, 14))
        }
    )


def told(acl: Acl) -> str:
    permission = "ALLOW" if acl.allows else "DENY"
    words = (acl.kind.name, acl.name, acl.pattern.name, acl.principal, acl.host, acl.operation.name, permission)
    return "\t".join(("ACL", *words))


def test_the_core_answers_as_kafkas_authorizer() -> None:
    chance = random.Random(SEED)
    lines: list[str] = []
    answers: list[bool] = []
    questions: list[str] = []
    for _ in range(SEQUENCES):
        by_default = chance.random() < 0.5
        world = World()
        acls = rules(chance)
        world.send(CreateAcls(acls=acls))
        lines += [f"NEW\t{str(by_default).lower()}", *map(told, acls)]
        for _ in range(QUESTIONS):
            who, host, operation = chance.choice(PRINCIPALS), chance.choice(HOSTS), chance.choice(OPERATIONS)
            kind, words = chance.choice(KINDS), (who, host, operation.name)
            if chance.random() < 0.75:
                name = chance.choice((*NAMES, "abcd", "zz", "hardcode"))
                lines.append("\t".join(("ONE", *words, kind.name, name)))
                answers.append(allows(world.state, who, host, operation, kind, name, by_default))
            else:
                lines.append("\t".join(("ANY", *words, kind.name)))
                answers.append(allows_any(world.state, who, host, operation, kind, by_default))
            questions.append(f"{lines[-1]} by {acls}, {by_default}")
    judge = ["java", "-cp", f"{fetch()}/*", str(Path(__file__).with_name("AuthorizerJudge.java"))]
    ran = subprocess.run(judge, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    found = [line == "1" for line in ran.stdout.splitlines()]
    assert len(found) == len(answers)
    differing = [each for each, ours, theirs in zip(questions, answers, found, strict=True) if ours is not theirs]
    assert not differing, differing[:3]
    assert 0.2 < sum(answers) / len(answers) < 0.8
