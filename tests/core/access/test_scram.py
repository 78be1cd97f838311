"""Users get keys and lose them, in the order of Kafka's checks; and no text shows a key."""

import msgspec
import pytest

from exacta.core.commands import AlterScramKeys
from exacta.core.event_codec import decode_event, encode_event
from exacta.core.events import ScramKeysSet
from exacta.core.rejections import Rejection
from exacta.core.replies import ScramKeysAltered
from exacta.core.snapshot import restore, snapshot
from exacta.core.values.scram import ScramAlteration, ScramKey, ScramMechanism
from exacta.core.values.secret import Secret
from simulation.invariants.access import keys_are_those_that_were_set
from tests.core.access.values import alteration, key
from tests.core.world import SMALL, World

SHA_256, SHA_512 = ScramMechanism
KEY_256, KEY_512 = key(SHA_256), key(SHA_512)


def alter(world: World, *alterations: ScramAlteration) -> dict[str, Rejection | None]:
    answer = world.send(AlterScramKeys(alterations=alterations))
    world.check()
    assert isinstance(answer, ScramKeysAltered)
    return dict(answer.rejections)


def test_a_user_has_a_key_for_each_mechanism_and_a_new_one_replaces_the_old(world: World) -> None:
    assert alter(world, alteration("u", KEY_256), alteration("v", KEY_512)) == {"u": None, "v": None}
    alter(world, alteration("u", KEY_512))
    assert world.state.scram_keys == {"u": (KEY_256, KEY_512), "v": (KEY_512,)}
    other = key(SHA_256, salt=b"other")
    alter(world, alteration("u", other))
    assert world.state.scram_keys == {"u": (KEY_512, other), "v": (KEY_512,)}
    assert alter(world, ScramAlteration("u", SHA_512)) == {"u": None}
    assert world.state.scram_keys == {"u": (other,), "v": (KEY_512,)}
    alter(world, ScramAlteration("u", SHA_256))
    assert "u" not in world.state.scram_keys


@pytest.mark.parametrize(
    ("alterations", "rejections"),
    [
        ([ScramAlteration("u", SHA_256)], {"u": Rejection.CREDENTIAL_NOT_FOUND}),
        ([ScramAlteration("u", None)], {"u": Rejection.UNSUPPORTED_MECHANISM}),
        ([ScramAlteration("", SHA_256)], {"": Rejection.UNACCEPTABLE_CREDENTIAL}),
        ([alteration("")], {"": Rejection.UNACCEPTABLE_CREDENTIAL}),
        ([alteration("u", key(iterations=4095))], {"u": Rejection.UNACCEPTABLE_CREDENTIAL}),
        ([alteration("u", key(iterations=16_385))], {"u": Rejection.UNACCEPTABLE_CREDENTIAL}),
        ([alteration("u", key(iterations=16_384))], {"u": None}),
        ([alteration("u"), alteration("u", KEY_512)], {"u": Rejection.DUPLICATE_USER}),
        ([alteration("u"), alteration("u"), alteration("u")], {"u": Rejection.DUPLICATE_USER}),
        ([ScramAlteration("u", None), alteration("u")], {"u": Rejection.UNSUPPORTED_MECHANISM}),
        ([ScramAlteration("u", SHA_256), alteration("v")], {"u": Rejection.CREDENTIAL_NOT_FOUND, "v": None}),
    ],
)
def test_the_first_fault_of_a_user_is_told_and_others_are_altered(
    world: World, alterations: list[ScramAlteration], rejections: dict[str, Rejection | None]
) -> None:
    assert alter(world, *alterations) == rejections
    assert world.state.scram_keys.keys() == {user for user, fault in rejections.items() if fault is None}


def test_keys_are_durable(world: World) -> None:
    alter(world, alteration("u", KEY_256))
    assert world.log[-1] == ScramKeysSet(user="u", keys=(KEY_256,))
    assert restore(snapshot(world.state), SMALL).scram_keys == {"u": (KEY_256,)}
    world.crash()
    assert world.state.scram_keys == {"u": (KEY_256,)}


def test_no_text_of_anything_that_holds_a_key_shows_it(world: World) -> None:
    command = AlterScramKeys(alterations=(alteration("u"),))
    world.send(command)
    holders = [
        command,
        world.log[-1],
        world.state,
        world.state.scram_keys,
        key(),
        decode_event(encode_event(world.log[-1])),
    ]
    for holder in holders:
        for text in (repr(holder), str(holder), f"{holder}"):
            assert "KEYBYTES" not in text
            assert "(hidden)" in text
    assert "KEYBYTES" not in str(ValueError(command))


def test_a_secret_cannot_be_read_by_mistake() -> None:
    secret = Secret(b"KEYBYTES")
    assert secret.value == b"KEYBYTES"
    assert f"{secret!r} {secret}" == "(hidden) (hidden)"
    for encode in (msgspec.msgpack.encode, msgspec.json.encode, msgspec.to_builtins):
        with pytest.raises(TypeError):
            encode(key())
    assert "(hidden)" in msgspec.json.encode(key(), enc_hook=repr).decode()


@pytest.mark.parametrize(
    "found", [{}, {"u": (KEY_512,)}, {"u": (KEY_256,), "v": (KEY_256,)}, {"u": (KEY_256, KEY_256)}]
)
def test_the_invariant_sees_others_than_the_last(world: World, found: dict[str, tuple[ScramKey, ...]]) -> None:
    alter(world, alteration("u", KEY_512))
    alter(world, ScramAlteration("u", SHA_512), alteration("v", KEY_512))
    alter(world, ScramAlteration("v", SHA_512), alteration("u", KEY_256))
    world.state.scram_keys = found
    assert list(keys_are_those_that_were_set(world.state, world.log))


def test_names_of_mechanisms() -> None:
    assert [each.sasl_name for each in ScramMechanism] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
