"""Access rules, keys and quotas as tests need them, and how hypothesis makes them."""

from typing import Any

from hypothesis import strategies as st

from exacta.core.commands import AlterClientQuotas, AlterScramKeys, CreateAcls, DeleteAcls, MakeFirstUser
from exacta.core.ids import PrincipalName
from exacta.core.values.acl import Acl, AclFilter, Operation, Pattern, PatternFilter, ResourceKind
from exacta.core.values.quotas import EntityType, QuotaAlteration, QuotaKey, entity_of
from exacta.core.values.scram import ScramAlteration, ScramKey, ScramMechanism
from exacta.core.values.secret import Secret

ALICE, BOB, ANYBODY = (PrincipalName(f"User:{name}") for name in ("alice", "bob", "*"))
KINDS = (ResourceKind.TOPIC, ResourceKind.GROUP)
OPERATIONS = (Operation.READ, Operation.DESCRIBE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS, Operation.ALL)
HOSTS = ("*", "10.0.0.1", "10.0.0.2")
NAMES = ("*", "a", "ab", "abc", "b", "*a")


def acl(**given: Any) -> Acl:
    """Return a rule that lets alice read a topic, but for what is given."""
    usual: dict[str, Any] = {
        "kind": ResourceKind.TOPIC,
        "name": "a",
        "pattern": Pattern.LITERAL,
        "principal": ALICE,
        "host": "*",
        "operation": Operation.READ,
        "allows": True,
    }
    return Acl(**usual | given)


def key(
    mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_256, salt: bytes = b"salt", iterations: int = 4096
) -> ScramKey:
    """Return a key whose parts nobody should see in a text."""
    return ScramKey(mechanism, salt, iterations, Secret(b"STOREDKEYBYTES"), Secret(b"SERVERKEYBYTES"))


def alteration(user: str, made: ScramKey | None = None) -> ScramAlteration:
    """Return what gives a user a key."""
    made = key() if made is None else made
    return ScramAlteration(user, made.mechanism, made)


ACLS = st.builds(
    Acl,
    kind=st.sampled_from(KINDS),
    name=st.sampled_from(NAMES),
    pattern=st.sampled_from((Pattern.LITERAL, Pattern.PREFIXED)),
    principal=st.sampled_from((ALICE, BOB, ANYBODY)),
    host=st.sampled_from(HOSTS),
    operation=st.sampled_from(OPERATIONS),
    allows=st.booleans(),
)
FILTERS = st.builds(
    AclFilter,
    kind=st.sampled_from((None, *KINDS)),
    name=st.sampled_from((None, *NAMES)),
    pattern=st.sampled_from(PatternFilter),
    principal=st.sampled_from((None, ALICE, ANYBODY)),
    host=st.sampled_from((None, *HOSTS)),
    operation=st.sampled_from((None, *OPERATIONS)),
    allows=st.sampled_from((None, True, False)),
)
_USERS = st.sampled_from(("", "u", "v"))
_KEYS = st.builds(key, st.sampled_from(ScramMechanism), iterations=st.sampled_from((4095, 4096, 16_384, 16_385)))
ALTERATIONS = st.one_of(
    st.builds(ScramAlteration, user=_USERS, mechanism=st.sampled_from((None, *ScramMechanism))),
    st.builds(alteration, user=_USERS, made=_KEYS),
)
_ENTITIES = st.dictionaries(
    st.sampled_from((EntityType.USER, EntityType.CLIENT_ID)), st.sampled_from(("u", None)), min_size=1
)
_VALUES = st.dictionaries(st.sampled_from(list(QuotaKey)[:2]), st.sampled_from((1.0, 2.5, None)))
_QUOTAS = st.builds(QuotaAlteration, _ENTITIES.map(entity_of), _VALUES)
COMMANDS = st.one_of(
    st.builds(CreateAcls, acls=st.lists(ACLS, max_size=3).map(tuple)),
    st.builds(DeleteAcls, filters=st.lists(FILTERS, max_size=2).map(tuple)),
    st.builds(AlterScramKeys, alterations=st.lists(ALTERATIONS, max_size=3).map(tuple)),
    st.builds(MakeFirstUser, alterations=st.lists(ALTERATIONS, min_size=1, max_size=2).map(tuple)),
    st.builds(
        AlterClientQuotas, alterations=st.lists(_QUOTAS, max_size=2, unique_by=lambda each: each.entity).map(tuple)
    ),
)
