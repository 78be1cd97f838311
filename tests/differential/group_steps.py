"""Steps of members of the consumer protocol, drawn by chance, and what a member knows of its group."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

TOPICS = {"t": 3, "u": 4}
PARTITIONS = [(topic, index) for topic, count in TOPICS.items() for index in range(count)]
INSTANCES = {"a": None, "b": None, "c": "i", "d": "i"}
MEMBERS = sorted(INSTANCES)
EPOCHS = {"join": 0, "leave": -1, "leave for a while": -2, "five": 5}

Told = list[tuple[str, int]]


@dataclass(frozen=True)
class Beat:
    """A heartbeat. `epoch` and `owned` say what of what the member was told it repeats."""

    member: str
    epoch: str
    owned: str
    topics: tuple[str, ...] | None
    instance: str


@dataclass(frozen=True)
class Commit:
    """Offsets of partitions that the member was told to own, or of others; in a transaction that is aborted, or not."""

    member: str
    epoch: str
    version: int
    transactional: bool
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Read:
    """A member asks for an offset."""

    member: str
    epoch: str


@dataclass(frozen=True)
class Remove:
    """An administrator removes members, by id and instance id."""

    members: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class Forget:
    """An administrator deletes offsets."""


Step = Beat | Commit | Read | Remove | Forget

members = st.sampled_from([*MEMBERS, "a", "b"])
BEATS = st.builds(
    Beat,
    member=members,
    epoch=st.sampled_from(["own"] * 8 + ["join"] * 4 + ["before", "after", "leave", "leave for a while", "five"]),
    owned=st.sampled_from(["told", "told", "told", "first", "more", "nothing", "unsaid"]),
    topics=st.sampled_from([None, None, None, ("t",), ("u",), ("t", "u")]),
    instance=st.sampled_from(["own", "own", "own", "own", "none", "other"]),
)
COMMITS = st.builds(
    Commit,
    member=st.sampled_from([*MEMBERS, "", "who"]),
    epoch=st.sampled_from(["own", "own", "own", "before", "after", "leave"]),
    version=st.sampled_from([0, 1, 1, 2]),
    transactional=st.booleans(),
    partitions=st.sampled_from([(), (), *((partition,) for partition in PARTITIONS)]),
)
READS = st.builds(Read, member=st.sampled_from([*MEMBERS, "who"]), epoch=st.sampled_from(["own", "before", "leave"]))
REMOVALS = st.builds(
    Remove,
    members=st.lists(
        st.sampled_from([("a", None), ("", "i"), ("c", "i"), ("who", None), ("", "z")]), min_size=1, max_size=2
    ).map(tuple),
)
SEQUENCES = st.lists(
    st.one_of(BEATS, BEATS, BEATS, BEATS, COMMITS, COMMITS, READS, REMOVALS, st.just(Forget())), max_size=25
)
VERSIONS = {False: (8, 9, 10), True: (4, 5, 6)}


@dataclass
class Member:
    """What a member knows, by what both brokers have told it."""

    epoch: int = 0
    before: int = 0
    told: Told = field(default_factory=list)

    def named(self, epoch: str) -> int:
        """Return the epoch that a step means."""
        return EPOCHS.get(epoch, {"own": self.epoch, "before": self.before, "after": self.epoch + 1}.get(epoch, 0))

    def owns(self, owned: str) -> Told | None:
        """Return what it reports."""
        more = [each for each in PARTITIONS if each not in self.told][:1]
        reports = {"told": self.told, "first": self.told[:1], "more": self.told + more, "nothing": []}
        return reports.get(owned)
