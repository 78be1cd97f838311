"""The access rules, laid out for questions: what a question costs does not grow with the number of rules.

The index is made of `State.acls` alone. For each kind of resource it has the names that literal rules are written for,
and the prefixes by their lengths: a question tries only the lengths that occur. What is written for one name lies by
principal and host, as bits: a question looks there for its own principal and host, and for everybody's, and nowhere
else. A second table has the rules of one principal, host and operation, for questions about any resource of a kind.
"""

from bisect import insort
from collections.abc import Iterator

from msgspec import Struct, field

from exacta.core.ids import PrincipalName
from exacta.core.values.acl import WILDCARD, Acl, Operation, Pattern, ResourceKind

Who = tuple[PrincipalName, str]
"""A principal and a host, as rules name them."""
Written = dict[Who, int]
"""The rules for one name: the bits of the operations that are allowed, and above them the bits of the denied ones."""

OPERATIONS = tuple(Operation)
BITS = {operation: 1 << number for number, operation in enumerate(OPERATIONS)}
DENIED = len(OPERATIONS)
"""The number by which the bits of what is denied lie above those of what is allowed."""
NOTHING: Written = {}

Right = tuple[PrincipalName, str, Operation, Pattern]
"""A principal, a host and an operation, as rules name them, by literal names or by prefixes."""
Names = dict[str, None]


class KindIndex(Struct):
    """The rules about one kind of resources."""

    literal: dict[str, Written] = field(default_factory=dict)
    prefixed: dict[int, dict[str, Written]] = field(default_factory=dict)
    lengths: list[int] = field(default_factory=list)
    """The lengths of prefixes that occur, in order."""
    allowed: dict[Right, Names] = field(default_factory=dict)
    """The names for which rules allow a right, in the order of the rules."""
    denied: dict[Right, Names] = field(default_factory=dict)

    def about(self, name: str) -> Iterator[tuple[Pattern, str, Written]]:
        """Return what is written for a resource: for its name, for all names, and for its prefixes."""
        literal = self.literal
        if name in literal:
            yield Pattern.LITERAL, name, literal[name]
        if WILDCARD in literal and name != WILDCARD:
            yield Pattern.LITERAL, WILDCARD, literal[WILDCARD]
        for length in self.lengths:
            if length > len(name):
                return
            prefix = name[:length]
            written = self.prefixed[length].get(prefix)
            if written is not None:
                yield Pattern.PREFIXED, prefix, written

    def written_for(self, name: str, pattern: Pattern) -> Written:
        """Return what is written for exactly this pattern."""
        names = self.literal if pattern is Pattern.LITERAL else self.prefixed.get(len(name), {})
        return names.get(name, NOTHING)

    def add(self, acl: Acl) -> None:
        """Take up a rule that is not there."""
        names = self.literal
        if acl.pattern is Pattern.PREFIXED:
            length = len(acl.name)
            if length not in self.prefixed:
                self.prefixed[length] = {}
                insort(self.lengths, length)
            names = self.prefixed[length]
        written = names.setdefault(acl.name, {})
        who = (acl.principal, acl.host)
        written[who] = written.get(who, 0) | _bit(acl)
        rights = self.allowed if acl.allows else self.denied
        rights.setdefault((*who, acl.operation, acl.pattern), {})[acl.name] = None

    def remove(self, acl: Acl) -> None:
        """Let go of a rule that is there."""
        names = self.literal if acl.pattern is Pattern.LITERAL else self.prefixed[len(acl.name)]
        written, who = names[acl.name], (acl.principal, acl.host)
        written[who] &= ~_bit(acl)
        if not written[who]:
            del written[who]
        if not written:
            del names[acl.name]
        if not names and acl.pattern is Pattern.PREFIXED:
            del self.prefixed[len(acl.name)]
            self.lengths.remove(len(acl.name))
        rights = self.allowed if acl.allows else self.denied
        right = (*who, acl.operation, acl.pattern)
        del rights[right][acl.name]
        if not rights[right]:
            del rights[right]


class AclIndex(Struct):
    """All access rules, by the kinds of resources."""

    kinds: dict[ResourceKind, KindIndex] = field(default_factory=lambda: {kind: KindIndex() for kind in ResourceKind})
    changes: int = 0
    """The number of changes since the start: what was concluded from the rules holds while it is the same."""

    def add(self, acl: Acl) -> None:
        """Take up a rule that is not there."""
        self.kinds[acl.kind].add(acl)
        self.changes += 1

    def remove(self, acl: Acl) -> None:
        """Let go of a rule that is there."""
        self.kinds[acl.kind].remove(acl)
        self.changes += 1

    def about(self, kind: ResourceKind, name: str) -> Iterator[Acl]:
        """Return the rules that apply to a resource."""
        for pattern, written_name, written in self.kinds[kind].about(name):
            yield from _acls(kind, written_name, pattern, written)

    def written_for(self, kind: ResourceKind, name: str, pattern: Pattern) -> Iterator[Acl]:
        """Return the rules that are written for exactly this pattern."""
        return _acls(kind, name, pattern, self.kinds[kind].written_for(name, pattern))


def _bit(acl: Acl) -> int:
    bit = BITS[acl.operation]
    return bit if acl.allows else bit << DENIED


def _acls(kind: ResourceKind, name: str, pattern: Pattern, written: Written) -> Iterator[Acl]:
    for (principal, host), bits in written.items():
        for number in range(2 * DENIED):
            if bits >> number & 1:
                operation = OPERATIONS[number % DENIED]
                yield Acl(kind, name, pattern, principal, host, operation, number < DENIED)
