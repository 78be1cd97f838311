"""The cost of a question to the authorizer, beside few rules and many: `python -m benchmarks.access_rules`.

It is measured in-process, without a network: what one request pays for one resource. Three questions are asked: about a
name that a rule is written for, about one without rules, and about any name.
"""

import time
from collections.abc import Callable, Iterator

from exacta.core.apply import apply
from exacta.core.commands import CreateAcls
from exacta.core.decide import decide
from exacta.core.ids import PrincipalName
from exacta.core.state.state import State
from exacta.core.values.acl import Acl, Operation, Pattern, ResourceKind
from exacta.engine.present_state import PresentState
from exacta.ports.authorizer import Principal, Resource
from exacta.security.authorizer import AclAuthorizer

COUNTS = (10, 1_000, 100_000)
ROUNDS, QUESTIONS = 5, 3_000
ALICE, HOST, NAME = Principal(name="alice"), "10.0.0.1", "topic-5"
KNOWN = Resource(ResourceKind.TOPIC, NAME)
UNKNOWN = Resource(ResourceKind.TOPIC, "nothing-like-it")
ANY = Resource(ResourceKind.TOPIC, "", Pattern.ANY)


def rule(name: str = NAME, pattern: Pattern = Pattern.LITERAL, user: str = "alice", host: str = "*") -> Acl:
    """Return a rule that lets a user read a topic."""
    return Acl(ResourceKind.TOPIC, name, pattern, PrincipalName(f"User:{user}"), host, Operation.READ, True)


def shapes(count: int) -> Iterator[tuple[str, list[Acl]]]:
    """Yield this number of rules in several shapes, each with one that is asked for."""
    numbers = range(count)
    lengths = "topic-5" + "x" * 193
    yield "a rule for each topic", [rule(f"topic-{each}") for each in numbers]
    yield "a rule for each user, on one topic", [rule(), *(rule(user=f"u{each}") for each in numbers)]
    yield (
        "a rule for each host, on one topic",
        [rule(), *(rule(host=f"10.{each >> 16}.{each >> 8 & 255}.{each & 255}") for each in numbers)],
    )
    yield "prefixes of one length", [rule(), *(rule(f"p{each:06}", Pattern.PREFIXED) for each in numbers)]
    yield (
        "prefixes of 200 lengths, seven of which fit the name",
        [rule(), *(rule(lengths[: each % 200 + 1], Pattern.PREFIXED, f"u{each}") for each in numbers)],
    )


def authorizer(acls: list[Acl]) -> AclAuthorizer:
    """Return the authorizer over a state with these rules."""
    state = State()
    for begin in range(0, len(acls), 500):
        for event in decide(state, CreateAcls(acls=tuple(acls[begin : begin + 500])), 0).events:
            apply(state, event)
    return AclAuthorizer(PresentState(state), frozenset(), allow_everyone=False)


def microseconds(ask: Callable[[], object]) -> float:
    """Return what one call takes, in the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(QUESTIONS):
            ask()
        best = min(best, time.perf_counter() - begin)
    return best / QUESTIONS * 1e6


def main() -> None:
    """Print the table."""
    rows: dict[str, list[str]] = {}
    for count in COUNTS:
        for shape, acls in shapes(count):
            asked = authorizer(acls)
            assert asked.allows(ALICE, HOST, Operation.READ, KNOWN)
            costs = [
                microseconds(lambda asked=asked, each=each: asked.allows(ALICE, HOST, Operation.READ, each))  # type: ignore[misc]
                for each in (KNOWN, UNKNOWN, ANY)
            ]
            rows.setdefault(shape, []).append(" / ".join(f"{cost:.1f}" for cost in costs))
    print("| rules |", " | ".join(f"{count:,}" for count in COUNTS), "|")
    print("|---|" + "---|" * len(COUNTS))
    for shape, cells in rows.items():
        print(f"| {shape} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
