"""The note that a sink keeps in its query's checkpoint: its rules as a table, and how it is read and written."""

import itertools
import json

import pytest

from exacta.spark.options import SinkOptions
from exacta.spark.sink.checkpoint import Checkpoint, CheckpointUnreadable
from exacta.spark.sink.errors import CopiedCheckpoint, IdentityChanged, RecordsForgotten, SinkError, UnknownPast
from exacta.spark.sink.note import SinkIdentity, SinkNotes, refusal

PREFIXES = (None, "pa", "pb")
SINKS = (None, "a", "b")


def identity(**settings):
    return SinkIdentity(**{"query_id": "Q", "location": "file:/a", **settings})


IDENTITIES = [
    identity(exactly_once=exactly_once, prefix=prefix, sink_name=sink_name)
    for exactly_once, prefix, sink_name in itertools.product((True, False), PREFIXES, SINKS)
    if exactly_once or prefix is None
]


def refused(now, own=None, others=(), *, recorded, batch, **settings):
    return refusal(now, own, others, recorded=recorded, batch=lambda: batch, **settings)


def test_a_name_on_the_cluster():
    assert [each.name for each in IDENTITIES[:9]] == [
        "Q", "Q.a", "Q.b", "pa", "pa.a", "pa.b", "pb", "pb.a", "pb.b",
    ]  # fmt: skip


@pytest.mark.parametrize("before", IDENTITIES)
@pytest.mark.parametrize("now", IDENTITIES)
@pytest.mark.parametrize("recorded", [True, False])
def test_every_change_is_refused_and_names_the_option(before, now, recorded):
    """The change is refused whatever the cluster knows under the new name."""
    if before.sink_name != now.sink_name:
        # Another sink has another note: of this one there is none, and the other names the batch at hand.
        found = refused(now, None, [before.note(5)], recorded=recorded, batch=5)
        if not before.exactly_once and not now.exactly_once:
            assert found is None
            return
    else:
        found = refused(now, before.note(4), recorded=recorded, batch=5)
        if before == now:
            assert found is None
            return
    assert isinstance(found, IdentityChanged)
    assert found.batch_id == 5
    values = {
        "delivery.guarantee": (before.exactly_once, now.exactly_once),
        "transactional.id.prefix": (before.prefix, now.prefix),
        "sink.name": (before.sink_name, now.sink_name),
    }
    changed = {name for name, (one, other) in values.items() if one != other}
    told = {name for name in values if f"option '{name}'" in str(found)}
    assert told == (changed & {"delivery.guarantee"} or changed)
    assert "option 'checkpoint.adopt.batch' to '5'" in str(found)
    for name in told:
        was = values[name][0]
        back = f"leave '{name}' out" if was is None else f"set '{name}' to '"
        assert back in str(found)


@pytest.mark.parametrize("decided", range(-1, 4))
@pytest.mark.parametrize("batch", range(4))
def test_forgotten_records_matter_for_a_batch_that_may_have_been_decided(decided, batch):
    note = identity(prefix="pa").note(decided)
    found = refused(identity(prefix="pa"), note, recorded=False, batch=batch)
    if batch <= decided:
        assert isinstance(found, RecordsForgotten)
        assert f"may have committed batch {batch} before" in str(found)
    else:
        assert found is None
    assert refused(identity(prefix="pa"), note, recorded=True, batch=batch) is None


@pytest.mark.parametrize(("recorded", "batch", "expected"), [
    (True, 0, None), (True, 7, None),  # an older version has written
    (False, 0, None),  # a new query
    (False, 7, UnknownPast),
])  # fmt: skip
def test_without_a_note(recorded, batch, expected):
    found = refused(identity(), None, recorded=recorded, batch=batch)
    assert (found is None) if expected is None else isinstance(found, expected)
    # What is written at least once may come twice in any case.
    assert refused(identity(exactly_once=False), None, recorded=False, batch=batch) is None


def test_a_copy_and_a_checkpoint_that_was_moved():
    note = identity().note(3)
    moved = identity(location="file:/b")
    found = refused(moved, note, recorded=True, batch=4)
    assert isinstance(found, CopiedCheckpoint)
    assert "set option 'checkpoint.moved.from' to 'file:/a'" in str(found)
    assert refused(moved, note, recorded=True, batch=4, moved_from="file:/a") is None
    assert isinstance(refused(moved, note, recorded=True, batch=4, moved_from="file:/c"), CopiedCheckpoint)
    # Two jobs that write at least once skip none of each other's rows.
    written = identity(exactly_once=False).note()
    assert refused(identity(exactly_once=False, location="file:/b"), written, recorded=False, batch=4) is None


def test_a_note_of_another_query():
    found = refused(identity(query_id="R"), identity().note(), recorded=True, batch=0)
    assert "is of query R, and the sink's note in it is of query Q" in str(found)


# --- on disk ----------------------------------------------------------------------------------------------------------


class Place:
    """A checkpoint of which only what the note needs is there."""

    def __init__(self, directory):
        self.directory = directory
        (directory / "offsets").mkdir(parents=True)
        (directory / "metadata").write_text('{"id":"Q"}')

    def plan(self, batch_id):
        (self.directory / "offsets" / str(batch_id)).touch()

    def notes(self, *, used=(), sink_name=None, **options):
        chosen = SinkOptions(**{"bootstrap": "a:1", "topic": "x", **options})
        return SinkNotes.of(Checkpoint(str(self.directory)), chosen, sink_name=sink_name, used=used)

    def written(self, **settings):
        """Write the note of a sink as a batch would."""
        notes = self.notes(**settings)
        notes.check(recorded=False)
        notes.keep()
        return notes


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "checkpoint")


def test_a_note_is_for_people_too(place):
    place.written(name="pa", sink_name="late/rows").deciding(7)
    (file,) = (place.directory / "exacta").iterdir()
    assert file.name == "sink.late%2Frows.json"
    assert json.loads(file.read_text()) == {
        "form": 1,
        "query": "Q",
        "checkpoint": f"file:{place.directory}",
        "delivery.guarantee": "exactly-once",
        "transactional.id.prefix": "pa",
        "sink.name": "late/rows",
        "topic": "x",
        "decided_batch": 7,
        "wrote": None,
    }


def test_a_sink_goes_on_and_its_note_is_not_written_again(place, monkeypatch):
    place.written().deciding(2)
    place.plan(3)
    notes = place.notes()
    notes.check(recorded=True)
    monkeypatch.setattr(notes, "_write", lambda note: pytest.fail("written again"))
    notes.keep()


def test_what_was_decided_stays_noted_over_a_start(place):
    place.written().deciding(2)
    place.plan(2)
    notes = place.notes()
    notes.check(recorded=True)
    notes.keep()
    with pytest.raises(RecordsForgotten):
        place.notes().check(recorded=False)


def test_a_batch_that_is_adopted_is_the_only_one(place):
    place.written(name="pa").deciding(3)
    place.plan(3)
    for adopted in (None, 2, 4):
        with pytest.raises(IdentityChanged, match=r"option 'transactional\.id\.prefix' was changed from 'pa' to 'pb'"):
            place.notes(name="pb", adopted_batch=adopted).check(recorded=False)
    place.written(name="pb", adopted_batch=3)
    place.notes(name="pb").check(recorded=True)  # also without the option
    with pytest.raises(IdentityChanged):
        place.notes(name="pa", adopted_batch=None).check(recorded=True)
    # Under the new name nothing was decided yet.
    place.plan(4)
    place.notes(name="pb", adopted_batch=3).check(recorded=False)
    place.notes(name="pb").deciding(4)
    with pytest.raises(RecordsForgotten):
        place.notes(name="pb", adopted_batch=3).check(recorded=False)


def test_no_option_allows_a_copy(place):
    place.written().deciding(3)
    place.plan(3)
    other = place.directory.rename(place.directory.parent / "copy")
    place.directory = other
    with pytest.raises(CopiedCheckpoint):
        place.notes(adopted_batch=3).check(recorded=True)


def test_a_further_sink_is_told_from_one_of_another_name(place):
    place.plan(5)
    # The first sink of a query that has a past was adopted.
    place.written(adopted_batch=5).deciding(5)
    place.written(sink_name="a", used={None}).deciding(5)
    with pytest.raises(IdentityChanged, match=r"option 'sink\.name' was changed from 'a' to 'b'"):
        place.notes(sink_name="b", used={None}).check(recorded=False)
    with pytest.raises(IdentityChanged, match="if this is a further sink, call write for it after"):
        place.notes(sink_name="b").check(recorded=False)
    place.notes(sink_name="b", used={None, "a"}).check(recorded=False)
    place.notes(sink_name="b", adopted_batch=5).check(recorded=False)
    with pytest.raises(IdentityChanged):  # records of an earlier life of that name say nothing
        place.notes(sink_name="b").check(recorded=True)


def test_a_name_that_is_changed_and_changed_back_is_refused_both_times(place):
    place.written().deciding(1)
    place.plan(1)
    with pytest.raises(IdentityChanged):
        place.notes(sink_name="b").check(recorded=False)
    place.written(sink_name="b", adopted_batch=1).deciding(1)
    place.plan(2)
    place.notes(sink_name="b").deciding(2)
    for name, was in ((None, "b"), ("c", "b")):
        # Whatever the cluster has under the other name.
        with pytest.raises(IdentityChanged, match=rf"option 'sink\.name' was .*'{was}'"):
            place.notes(sink_name=name).check(recorded=True)
    place.notes(sink_name="b").check(recorded=True)


def test_a_sink_that_rests_is_in_nobodys_way(place):
    """One that writes now and then, and the others of its query, which go on, in whatever order they are called."""
    place.written().deciding(0)
    place.written(sink_name="late", used={None}).deciding(0)
    place.plan(1)
    place.notes().check(recorded=True)
    place.written(sink_name="errors", used={None}).deciding(1)
    # The batch is repeated: each is called in its turn.
    place.notes().deciding(1)
    place.notes().check(recorded=True)
    place.notes(sink_name="errors", used={None}).check(recorded=True)
    place.notes(sink_name="late", used={None, "errors"}).check(recorded=True)


@pytest.mark.parametrize("first", ["x", "y"])
def test_two_sinks_that_swap_their_names_in_the_middle_of_a_batch_are_refused(place, first):
    """The first had written the batch, the second had not; whichever is called first now."""
    topics = {"x": "to-x", "y": "to-y"}
    for batch_id, names in ((0, "xy"), (1, "x")):
        place.plan(batch_id)
        for name in names:
            place.written(sink_name=name, topic=topics[name], used=set(names)).deciding(batch_id)
    swapped = {"x": "to-y", "y": "to-x"}
    with pytest.raises(IdentityChanged):
        place.notes(sink_name=first, topic=swapped[first]).check(recorded=True)
    # Between two batches a sink may go on to another topic.
    place.notes(sink_name="y", topic="to-y", used={"x"}).deciding(1)
    place.plan(2)
    place.notes(sink_name=first, topic=swapped[first]).check(recorded=True)


def test_a_long_name_has_a_file_too(place):
    names = ["é" * 80, "é" * 81]
    for name in names:
        place.written(sink_name=name, used=set(names)).deciding(3)
    files = [each.name for each in (place.directory / "exacta").iterdir()]
    assert len(files) == 2
    assert all(len(name.encode()) < 255 for name in files)


def test_two_guarantees_under_one_name_in_one_run_are_two_sinks(place):
    place.written()
    with pytest.raises(SinkError, match=r"give each but one a name of its own by option 'sink\.name'"):
        place.notes(exactly_once=False, used={None}).check(recorded=False)
    with pytest.raises(IdentityChanged):
        place.notes(exactly_once=False).check(recorded=False)
    place.notes(exactly_once=False, sink_name="b", used={None}).check(recorded=False)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "could not be read"),
        ("{}", "could not be read"),
        ('{"form":2,"query":"Q","checkpoint":"","delivery.guarantee":""}', "written by another version of exacta"),
    ],
)
def test_a_note_that_cannot_be_read_is_not_guessed_about(place, content, sentence):
    (place.directory / "exacta").mkdir()
    (place.directory / "exacta" / "sink.json").write_text(content)
    with pytest.raises(CheckpointUnreadable, match=sentence):
        place.notes().check(recorded=True)


def test_where_the_note_cannot_be_written_nothing_is(place):
    (place.directory / "exacta").write_text("a file is in the way")
    notes = place.notes()
    with pytest.raises(CheckpointUnreadable, match="could not be"):
        notes.check(recorded=True)
