"""The knowledge that clients have of what the broker keeps for them, while nobody knows what crashes have taken.

Owns three kinds of it. An option that is said to be set is in force, over all lives of the broker, until it is set
again. An offset that is said to be stored is there until its group was out of use for the retention; what is gone stays
gone. An access rule or a key that is said to be made is there until it is deleted. Where a change was not answered,
both outcomes are possible until somebody reads. Time is virtual: no set clock counts.
"""

from collections.abc import Hashable, Iterator, Mapping

Place = tuple[str, int]
Options = frozenset[tuple[str, str, str]]
"""The broker's id or "", the option's name, its value."""
ROUNDING_SECONDS = 0.01


class OffsetsTold:
    """The knowledge of one group: the offsets that may be there, and None where there may be none."""

    def __init__(self, group: str, retention_seconds: float) -> None:
        self._group = group
        self._retention_seconds = retention_seconds - ROUNDING_SECONDS
        self._used = 0.0
        self._stays = False
        self._possible: dict[Place, set[int | None]] = {}

    def passes(self, now: float) -> None:
        """Note that time has passed, in which the group may have gone."""
        if not self._stays and now >= self._used + self._retention_seconds:
            for possible in self._possible.values():
                possible.add(None)

    def asks(self, offsets: Mapping[Place, int]) -> None:
        """Note that somebody asks for these to be stored."""
        for place, offset in offsets.items():
            self._possible.setdefault(place, {None}).add(offset)

    def stored(self, offsets: Mapping[Place, int], sent: float, now: float, *, stays: bool = False) -> None:
        """The broker says that these are stored; `stays`: with what keeps the group for ever."""
        self.used(sent, now)
        self._possible.update((place, {offset}) for place, offset in offsets.items())
        self._stays = self._stays or stays

    def used(self, sent: float, now: float) -> None:
        """The broker says that the group was in use, at some time since this was asked."""
        self.passes(now)
        self._used = max(self._used, sent)

    def read(self, found: Mapping[Place, int | None], now: float) -> Iterator[str]:
        """Go on with what was read of all places; yield what must not be."""
        self.passes(now)
        for place, offset in found.items():
            possible = self._possible.get(place, {None})
            if offset not in possible:
                idle = f"{now - self._used:.1f} s after its last use"
                yield f"offsets: {self._group} has {offset} of {place}, and not {sorted(map(str, possible))}, {idle}"
        self._possible = {place: {offset} for place, offset in found.items()}


class OptionsTold:
    """The knowledge of the options that are set while the broker runs: what may be set, as a whole."""

    def __init__(self) -> None:
        self._possible: set[Options] = {frozenset()}

    def asks(self, broker_id: str, changes: Mapping[str, str | None]) -> None:
        """Somebody asks for these changes, or has asked and was maybe not heard yet; None: back to the default."""
        self._possible |= {_changed(each, broker_id, changes) for each in self._possible}

    def altered(self, broker_id: str, changes: Mapping[str, str | None]) -> None:
        """The broker says that these changes are made. Changes that are made twice are as if they were made once."""
        self._possible = {_changed(each, broker_id, changes) for each in self._possible}

    def read(self, found: Options, how: str) -> Iterator[str]:
        """Go on with what was read as a whole; yield what must not be."""
        if found not in self._possible:
            yield f"options: {how} {sorted(found)}, and not {sorted(map(sorted, self._possible))}"
        self._possible = {found}

    def in_force(self, broker_id: str, name: str, default: str, found: str) -> Iterator[str]:
        """Go on with the value by which the broker acts; yield what must not be."""
        left = {each for each in self._possible if _in_force(each, broker_id, name, default) == found}
        if not left:
            yield f"options: the broker acts as if {name} was {found}, not as of {sorted(map(sorted, self._possible))}"
        self._possible = left or self._possible


class AccessTold:
    """The knowledge of access rules and users, each by what names it: the values that it may have; None: it is not."""

    def __init__(self) -> None:
        self._possible: dict[Hashable, set[object]] = {}

    def asks(self, changes: Mapping[Hashable, object]) -> None:
        """Somebody asks for these changes."""
        for key, value in changes.items():
            self._possible.setdefault(key, {None}).add(value)

    def altered(self, changes: Mapping[Hashable, object]) -> None:
        """The broker says that these changes are made."""
        self._possible |= {key: {value} for key, value in changes.items()}

    def read(self, found: Mapping[Hashable, object]) -> Iterator[str]:
        """Go on with what was read of all of them; yield what must not be."""
        for key in {**self._possible, **found}:
            possible = self._possible.get(key, {None})
            if found.get(key) not in possible:
                yield f"access: {key} is {found.get(key)}, and not {sorted(map(str, possible))}"
            self._possible[key] = {found.get(key)}

    def certain(self) -> list[Hashable] | None:
        """Return what there is; None where it is not certain."""
        if any(len(possible) > 1 for possible in self._possible.values()):
            return None
        return [key for key, possible in self._possible.items() if None not in possible]


def _changed(options: Options, broker_id: str, changes: Mapping[str, str | None]) -> Options:
    kept = {each for each in options if each[0] != broker_id or each[1] not in changes}
    return frozenset(kept | {(broker_id, name, value) for name, value in changes.items() if value is not None})


def _in_force(options: Options, broker_id: str, name: str, default: str) -> str:
    set_for = {each[0]: each[2] for each in options if each[1] == name}
    return set_for.get(broker_id, set_for.get("", default))
