"""The simulation complains of what cannot be after what clients were told, and of nothing else."""

from simulation.told import AccessTold, OffsetsTold, OptionsTold, Place

A: Place = ("t", 0)
B: Place = ("t", 1)
RETENTION = 5.0
NAME = "message.max.bytes"


def offsets() -> OffsetsTold:
    return OffsetsTold("g", RETENTION)


def stored(told: OffsetsTold, offset: int, at: float, place: Place = A) -> None:
    told.asks({place: offset})
    told.stored({place: offset}, at, at + 0.1)


def test_what_is_stored_is_there_until_the_group_was_out_of_use_for_the_retention() -> None:
    told = offsets()
    stored(told, 1, 10.0)
    assert not list(told.read({A: 1, B: None}, 14.0))
    assert list(told.read({A: None, B: None}, 14.5))
    told = offsets()
    stored(told, 1, 10.0)
    assert not list(told.read({A: None, B: None}, 15.0))
    assert list(told.read({A: 1, B: None}, 15.1)), "it comes back"


def test_a_member_is_a_use_and_so_is_a_commit_of_another_partition() -> None:
    told = offsets()
    stored(told, 1, 10.0)
    stored(told, 2, 13.0, B)
    told.used(17.0, 17.1)
    assert list(told.read({A: None, B: 2}, 21.0))
    told = offsets()
    stored(told, 1, 10.0)
    stored(told, 2, 16.0, B)
    assert not list(told.read({A: None, B: 2}, 17.0)), "the group may have gone before the second commit"


def test_a_commit_that_nobody_answered_may_be_there_or_not_until_somebody_reads() -> None:
    told = offsets()
    stored(told, 1, 10.0)
    told.asks({A: 2})
    assert not list(told.read({A: 2, B: None}, 11.0))
    assert list(told.read({A: 1, B: None}, 12.0))


def test_what_keeps_a_group_keeps_it_for_ever() -> None:
    told = offsets()
    told.asks({A: 1})
    told.stored({A: 1}, 10.0, 10.1, stays=True)
    assert list(told.read({A: None, B: None}, 1_000.0))


def test_an_option_is_set_until_it_is_set_again() -> None:
    told = OptionsTold()
    told.asks("", {NAME: "1"})
    told.altered("", {NAME: "1"})
    assert not list(told.in_force("0", NAME, "9", "1"))
    told.asks("0", {NAME: "2"})
    assert not list(told.read(frozenset({("", NAME, "1"), ("0", NAME, "2")}), "described are"))
    assert list(told.in_force("0", NAME, "9", "1")), "it was seen"
    told.asks("0", {NAME: None})
    told.altered("0", {NAME: None})
    assert list(told.read(frozenset(), "described are"))
    assert not list(told.in_force("0", NAME, "9", "9"))


def test_a_rule_that_is_made_is_there_until_it_is_deleted() -> None:
    told = AccessTold()
    told.asks({"rule": True})
    assert told.certain() is None
    told.altered({"rule": True})
    assert told.certain() == ["rule"]
    assert not list(told.read({"rule": True}))
    assert list(told.read({}))
    told.asks({"rule": None})
    told.altered({"rule": None})
    assert list(told.read({"rule": True})), "it comes back"


def test_a_change_of_a_rule_that_nobody_answered_may_be_made_or_not_until_somebody_reads() -> None:
    told = AccessTold()
    told.altered({"key": 4_096})
    told.asks({"key": 5_000})
    assert not list(told.read({"key": 5_000}))
    assert list(told.read({"key": 4_096}))
    assert list(AccessTold().read({"nobody's": True}))
