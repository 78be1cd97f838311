"""The commands of access rules, users and quotas that the corpus plays."""

from collections.abc import Callable, Iterator

from exacta.core.commands import AlterClientQuotas, AlterScramKeys, Command, CreateAcls, DeleteAcls
from exacta.core.ids import PrincipalName
from exacta.core.values.acl import Acl, AclFilter, Operation, Pattern, ResourceKind
from exacta.core.values.quotas import EntityType, QuotaAlteration, QuotaKey, entity_of
from exacta.core.values.scram import ScramAlteration, ScramKey, ScramMechanism
from exacta.core.values.secret import Secret


def access_commands(named: Callable[[str], str], login: PrincipalName) -> Iterator[Command]:
    """Make and delete something of each kind; `named` gives a name of this life."""
    name = named("a")
    reads = Acl(ResourceKind.TOPIC, name, Pattern.LITERAL, login, "*", Operation.READ, True)
    yield CreateAcls(acls=(reads, Acl(ResourceKind.TOPIC, name, Pattern.PREFIXED, login, "*", Operation.ALL, False)))
    yield DeleteAcls(filters=(AclFilter(name=name, allows=False),))
    keys = [
        ScramKey(mechanism, b"salt", 4096, Secret(b"stored key"), Secret(b"server key")) for mechanism in ScramMechanism
    ]
    for key in keys:
        for user in ("user", "gone"):
            yield AlterScramKeys(alterations=(ScramAlteration(named(user), key.mechanism, key),))
        yield AlterScramKeys(alterations=(ScramAlteration(named("gone"), key.mechanism),))
    kept = entity_of({EntityType.USER: named("user"), EntityType.CLIENT_ID: None})
    gone = entity_of({EntityType.IP: "10.0.0.1"})
    for entity, values in (
        (kept, {QuotaKey.PRODUCER_BYTE_RATE: 1000.0, QuotaKey.REQUEST_PERCENTAGE: 12.5}),
        (gone, {QuotaKey.CONNECTION_CREATION_RATE: 1.0}),
        (gone, {QuotaKey.CONNECTION_CREATION_RATE: None}),
    ):
        yield AlterClientQuotas(alterations=(QuotaAlteration(entity, values),))
