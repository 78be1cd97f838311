"""Users get keys for SCRAM, and lose them (KIP-554): checks come in the order of Kafka's `ScramControlManager`."""

from exacta.core.commands import AlterScramKeys
from exacta.core.events import ScramKeysSet
from exacta.core.outcome import Outcome
from exacta.core.rejections import Rejection
from exacta.core.replies import ScramKeysAltered
from exacta.core.state.state import State
from exacta.core.values.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramAlteration, ScramKey
from exacta.core.values.users import problem_of


def alter(state: State, command: AlterScramKeys, now_ms: int) -> Outcome:
    """Alter the keys of each user that has one alteration without a fault. A user with two of them keeps all keys."""
    taken: dict[str, ScramAlteration] = {}
    results: dict[str, Rejection | None] = {}
    for each in command.alterations:
        if results.get(each.user) is not None:
            continue  # the first fault is the one that is told
        results[each.user] = Rejection.DUPLICATE_USER if each.user in taken else _fault(state, each)
        taken[each.user] = each
    events = [
        ScramKeysSet(user=user, keys=_altered(state.scram_keys.get(user, ()), each))
        for user, each in taken.items()
        if results[user] is None
    ]
    return Outcome(events=tuple(events), reply=ScramKeysAltered(rejections=tuple(results.items())))


def _fault(state: State, wanted: ScramAlteration) -> Rejection | None:
    if not wanted.user:
        return Rejection.UNACCEPTABLE_CREDENTIAL
    if wanted.mechanism is None:
        return Rejection.UNSUPPORTED_MECHANISM
    if wanted.key is None:
        known = state.scram_keys.get(wanted.user, ())
        return None if any(each.mechanism is wanted.mechanism for each in known) else Rejection.CREDENTIAL_NOT_FOUND
    if problem_of(wanted.user) is not None:
        return Rejection.UNACCEPTABLE_CREDENTIAL
    if not MIN_ITERATIONS <= wanted.key.iterations <= MAX_ITERATIONS:
        return Rejection.UNACCEPTABLE_CREDENTIAL
    return None


def _altered(known: tuple[ScramKey, ...], wanted: ScramAlteration) -> tuple[ScramKey, ...]:
    others = tuple(each for each in known if each.mechanism is not wanted.mechanism)
    return others if wanted.key is None else (*others, wanted.key)
