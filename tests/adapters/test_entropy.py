"""The operating system's entropy: ids of version 4, and numbers below a bound."""

from exacta.adapters.entropy import SystemEntropy


def test_ids_are_of_version_4_and_differ() -> None:
    ids = [SystemEntropy().new_uuid() for _ in range(100)]
    assert {each.version for each in ids} == {4}
    assert len(set(ids)) == len(ids)


def test_numbers_lie_below_the_bound() -> None:
    assert {SystemEntropy().below(2) for _ in range(200)} == {0, 1}
