"""The note that a sink keeps in its query's checkpoint. It says under which name, and with which guarantee, it wrote.

This module owns the note's form and the rules about it. The cluster remembers what a sink has committed, but under the
sink's name only: a sink of another name looks like a new one, and writes once more what the query wrote last. A cluster
also forgets, and then a sink that has written for months looks like a new one too. The checkpoint outlives both, so the
sink says there who it is, and for which batch it decides.

Theory of operation. A sink that begins a batch reads its note.

- The note names the sink as it is now, and the cluster has its records: the sink goes on. This is so in every batch.
- The note differs: an option was changed, and the sink is refused (`IdentityChanged`).
- The note is right and the cluster has no records: they expired or were deleted. The note holds the last batch that
  the sink may have decided. If that is the batch at hand, nobody knows whether it was committed, and the sink is
  refused (`RecordsForgotten`); a later batch was never decided, so nothing of it is there, and the sink goes on. An
  older copy of the checkpoint has an older note, though: if the cluster shows that the sink has committed the batch at
  hand or a later one (`later_writes.py`), the sink is refused (`OlderCheckpoint`).
- There is no note, but records: an older version wrote them. The sink goes on, and writes its note.
- There is neither. In batch 0 the sink is new. In a later batch the query wrote with something else before, Spark's
  own connector for one, and nobody knows whether that has written the batch at hand: the sink is refused
  (`UnknownPast`).

A refused change can be allowed for one batch, by its number (option `checkpoint.adopt.batch`). So the option allows
nothing later if it is left standing. Two orders make the note worth believing: a sink has a record on the cluster
before it has a note, and the note names a batch before that batch is decided.

A query with several sinks (`exacta.spark.write`) has a note for each. If the name of one sink was changed in the middle
of a batch, its note stays behind: it names the batch at hand, this run has not used it, and the note of the sink that
now writes does not name that batch. A function that calls its sinks one after the other, in one order, never leaves
that picture: a sink that is called later notes a batch after those that are called before it. A sink that rests does
not leave it either, since it writes now and then.
"""

from collections.abc import Callable, Collection
from hashlib import sha256
from typing import Self
from urllib.parse import quote

import msgspec
from msgspec import Struct

from exacta.spark.options import AT_LEAST_ONCE, EXACTLY_ONCE, SinkOptions
from exacta.spark.sink.checkpoint import Checkpoint, CheckpointUnreadable, canonical_location
from exacta.spark.sink.errors import (
    CopiedCheckpoint,
    IdentityChanged,
    MayComeTwice,
    OlderCheckpoint,
    RecordsForgotten,
    SinkError,
    UnknownPast,
)
from exacta.spark.sink.later_writes import LastWrites

_FOLDER = "exacta"
_FORM = 1
_NONE_DECIDED = -1
_LONGEST_FILE_NAME = 120
"""The characters of a sink's name that the name of its file shows. File systems take 255 bytes."""


class SinkNote(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the note that a checkpoint holds of one sink.

    Its keys are names of options, so that a reader of the file knows them.
    """

    form: int = _FORM
    query: str
    checkpoint: str  # where it was when the note was written, in its comparable form
    guarantee: str = msgspec.field(name="delivery.guarantee")
    prefix: str | None = msgspec.field(name="transactional.id.prefix", default=None)
    sink_name: str | None = msgspec.field(name="sink.name", default=None)
    topic: str | None = None  # None: rows name their topics
    decided_batch: int = _NONE_DECIDED  # the last one that may have been decided; at least once: written
    wrote: LastWrites | None = None  # None: not known


LaterWrites = Callable[[int, LastWrites | None], str | None]
"""Returns what shows that a batch or a later one is committed, if anything does. The second argument is the note's."""


class SinkIdentity(Struct, frozen=True, kw_only=True):
    """The identity of a sink, by its options and its checkpoint."""

    query_id: str
    location: str  # of the checkpoint, in its comparable form
    exactly_once: bool = True
    prefix: str | None = None
    sink_name: str | None = None
    topic: str | None = None

    @property
    def name(self) -> str:
        """Return the name on the cluster, which transactional ids and groups begin with."""
        name = self.prefix or self.query_id
        # A dot, not a hyphen: so it is no task's name.
        return name if self.sink_name is None else f"{name}.{self.sink_name}"

    def note(self, decided_batch: int = _NONE_DECIDED, wrote: LastWrites | None = None) -> SinkNote:
        """Return the note of this sink."""
        return SinkNote(
            query=self.query_id,
            checkpoint=self.location,
            guarantee=EXACTLY_ONCE if self.exactly_once else AT_LEAST_ONCE,
            prefix=self.prefix,
            sink_name=self.sink_name,
            topic=self.topic,
            decided_batch=decided_batch,
            wrote=wrote,
        )


def refusal(
    identity: SinkIdentity,
    own: SinkNote | None,
    others: Collection[SinkNote],
    *,
    recorded: bool,
    batch: Callable[[], int],
    later: LaterWrites = lambda batch_id, wrote: None,
    used: Collection[str | None] = (),
    moved_from: str | None = None,
) -> SinkError | None:
    """Return why a sink must not write, or None; `own` is its note, `others` those of other sinks of its query.

    `recorded` tells whether the cluster has records under the sink's name. `batch` looks up the number of the batch at
    hand, and `later` what shows that it is committed; both are called only if the answer hangs on them. `used` has the
    names of the sinks that this run has used.
    """
    if own is not None:
        if own.query != identity.query_id:
            return SinkError(
                f"the checkpoint at '{identity.location}' is of query {identity.query_id}, and the sink's note in it "
                f"is of query {own.query}: was file 'metadata' replaced? Start the query with a new checkpoint"
            )
        changes = _changes(identity, own)
        if changes:
            return IdentityChanged(identity.location, changes, batch())
        topics = (own.topic, identity.topic)
        if None not in topics and len(set(topics)) > 1 and own.decided_batch >= batch():
            # Two sinks that swapped their names look so; and a batch that was cut off is repeated where it was written.
            return IdentityChanged(identity.location, [("topic", *topics)], batch())
        if identity.exactly_once and own.checkpoint not in (identity.location, moved_from):
            return CopiedCheckpoint.of(identity.query_id, identity.location, own.checkpoint)
        if identity.exactly_once and not recorded:
            if batch() <= own.decided_batch:
                return RecordsForgotten(identity.name, batch())
            shown = later(batch(), own.wrote)
            if shown is not None:
                return OlderCheckpoint(identity.location, own.decided_batch, shown)
    for other in others:
        # Between two that write at least once, a name makes no difference.
        counts = other.sink_name not in used and (identity.exactly_once or other.guarantee == EXACTLY_ONCE)
        if counts and other.decided_batch >= batch() and (own is None or own.decided_batch < batch()):
            return IdentityChanged(identity.location, _changes(identity, other), batch())
    if identity.exactly_once and not recorded and own is None and not others and batch() > 0:
        return UnknownPast(identity.location, batch())
    return None


def _changes(identity: SinkIdentity, note: SinkNote) -> list[tuple[str, str | None, str | None]]:
    """Return the options that differ, each with its value in the note and now."""
    now = identity.note()
    guarantee = ("delivery.guarantee", note.guarantee, now.guarantee)
    # Without transactions there are no names; a job that leaves them has left these options too.
    if note.guarantee != now.guarantee:
        return [guarantee]
    names = [
        ("transactional.id.prefix", note.prefix, now.prefix),
        ("sink.name", note.sink_name, now.sink_name),
    ]
    return [change for change in names if change[1] != change[2]]


class SinkNotes:
    """The note of one sink in its query's checkpoint, read and written.

    `used` has the names of the sinks that this run of the query has used. `adopted_batch` is the value of option
    `checkpoint.adopt.batch`. `batch_id` is the batch at hand, if the caller knows it.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        identity: SinkIdentity,
        *,
        moved_from: str | None = None,
        adopted_batch: int | None = None,
        used: Collection[str | None] = (),
        batch_id: int | None = None,
    ) -> None:
        self.identity = identity
        self._checkpoint = checkpoint
        self.moved_from = moved_from
        self._adopted_batch = adopted_batch
        self._used = used
        self._batch_id = batch_id
        self._wanted = identity.note()
        self._found: SinkNote | None = None

    @classmethod
    def of(
        cls,
        checkpoint: Checkpoint,
        options: SinkOptions,
        *,
        sink_name: str | None = None,
        used: Collection[str | None] = (),
        batch_id: int | None = None,
    ) -> Self:
        """Return the note of a sink with these options; raises `CheckpointUnreadable`."""
        identity = SinkIdentity(
            query_id=checkpoint.query_id(),
            location=checkpoint.canonical_location,
            exactly_once=options.exactly_once,
            prefix=options.name,
            sink_name=sink_name,
            topic=options.topic,
        )
        moved_from = options.checkpoint_moved_from
        return cls(
            checkpoint,
            identity,
            moved_from=None if moved_from is None else canonical_location(moved_from),
            adopted_batch=options.adopted_batch,
            used=used,
            batch_id=batch_id,
        )

    def check(self, *, recorded: bool, later: LaterWrites = lambda batch_id, wrote: None) -> None:
        """Raise why the sink must not write, unless its batch was adopted; raises `CheckpointUnreadable` too.

        `later` looks for what the sink has committed since its note.
        """
        self._found = own = self._read(_file_of(self.identity.sink_name))
        if own is not None and own.guarantee != self._wanted.guarantee and own.sink_name in self._used:
            raise SinkError(
                "two calls of write have one name and different values of option 'delivery.guarantee': where a query "
                "writes to several sinks, give each but one a name of its own by option 'sink.name'"
            )
        reason = refusal(
            self.identity,
            own,
            # A sink that this run has used has looked before.
            () if own is not None and own.sink_name in self._used else self._of_others(),
            recorded=recorded,
            batch=self._batch,
            later=later,
            used=self._used,
            moved_from=self.moved_from,
        )
        adopted = isinstance(reason, MayComeTwice) and reason.batch_id == self._adopted_batch
        if reason is not None and not adopted:
            raise reason
        known = None if adopted else own
        self._wanted = self.identity.note() if known is None else self.identity.note(known.decided_batch, known.wrote)

    def keep(self) -> None:
        """Write the note, unless it is there. To be called when the cluster has a record of the sink."""
        if self._found != self._wanted:
            self._write(self._wanted)

    def keep_without_records(self) -> None:
        """Check and write the note of a sink that writes at least once: the cluster holds no records of it."""
        self.check(recorded=False)
        self.deciding(self._batch())

    def deciding(self, batch_id: int, wrote: LastWrites | None = None) -> None:
        """Note that a batch may be decided from now on, and what it `wrote`, as far as that is known."""
        self._write(self.identity.note(batch_id, wrote))

    @property
    def wrote(self) -> LastWrites | None:
        """Return what the note says of the last batch with rows, once the sink was checked."""
        return self._wanted.wrote

    def deciding_nothing(self, batch_id: int) -> None:
        """Note the number of a batch without rows; what the last one wrote stays."""
        last = self._read(_file_of(self.identity.sink_name))
        self._write(self.identity.note(batch_id, None if last is None else last.wrote))

    def _batch(self) -> int:
        """Return the batch at hand: what the caller knows, else what Spark has planned last."""
        if self._batch_id is None:
            self._batch_id = self._checkpoint.current_batch()
        return self._batch_id

    def _of_others(self) -> list[SinkNote]:
        """Return the notes of the query's other sinks."""
        try:
            names = sorted(self._checkpoint.files.names(_FOLDER))
        except OSError as error:
            raise self._unreadable(_FOLDER, error) from error
        mine = _file_of(self.identity.sink_name)
        paths = [f"{_FOLDER}/{name}" for name in names if name.endswith(".json")]
        notes = [self._read(path) for path in paths if path != mine]
        return [note for note in notes if note is not None]

    def _read(self, name: str) -> SinkNote | None:
        try:
            content = self._checkpoint.files.read(name)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unreadable(name, error) from error
        try:
            note = msgspec.json.decode(content, type=SinkNote)
        except msgspec.DecodeError as error:
            raise self._unreadable(name, error) from error
        if note.form != _FORM:
            raise CheckpointUnreadable(
                f"the sink's note '{name}' in the checkpoint at '{self._checkpoint.location}' was written by another "
                "version of exacta; use that one to go on"
            )
        return note

    def _write(self, note: SinkNote) -> None:
        name = _file_of(note.sink_name)
        try:
            self._checkpoint.files.write(name, msgspec.json.format(msgspec.json.encode(note)) + b"\n")
        except OSError as error:
            raise CheckpointUnreadable(
                f"the sink's note '{name}' could not be written to the checkpoint at '{self._checkpoint.location}', "
                f"where it says what the sink is called on the cluster: {error}. The sink must be permitted to write "
                "there"
            ) from error
        self._found = self._wanted = note

    def _unreadable(self, name: str, error: Exception) -> CheckpointUnreadable:
        return CheckpointUnreadable(
            f"the sink's note '{name}' in the checkpoint at '{self._checkpoint.location}' could not be read: {error}. "
            "If the file is damaged, remove it: the sink then goes by what the cluster has of it"
        )


def _file_of(sink_name: str | None) -> str:
    if sink_name is None:
        return f"{_FOLDER}/sink.json"
    quoted = quote(sink_name, safe="")
    if len(quoted) > _LONGEST_FILE_NAME:
        quoted = f"{quoted[:_LONGEST_FILE_NAME]}-{sha256(sink_name.encode()).hexdigest()[:16]}"
    return f"{_FOLDER}/sink.{quoted}.json"
