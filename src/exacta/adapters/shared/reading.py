"""Reads of batches in the objects and the tail of a shared journal.

All is as for a local journal (`exacta.adapters.local.reading`), but what was looked up may be gone when it is read: an
object was removed a long time ago, or a group has left the tail. Then the catalog is loaded again, and the batches are
looked up once more. Only batches that lie there as they did are read so: what was compacted meanwhile is another batch,
and the reader has to find that itself.
"""

from collections.abc import Callable, Sequence

from exacta.adapters.local.index.segment_rows import DamagedIndex, Place
from exacta.adapters.local.reading import Reader
from exacta.adapters.local.worker import NewWorker, Worker
from exacta.adapters.shared.blocks import Gone
from exacta.adapters.shared.catalog import Catalog
from exacta.adapters.shared.files import ObjectFiles
from exacta.ports.journal import Buffer, Extent, Failed

Done = Callable[[list[Buffer | Failed]], None]


class _Gone(Failed):
    """A read that failed because a newer catalog says where the batches are."""


class ObjectReader(Reader):
    """Read extents; every method is called on the event-loop thread."""

    def __init__(
        self,
        files: ObjectFiles,
        catalog: Catalog,
        reload: Callable[[Callable[[], None]], None],
        call_soon: Callable[..., object],
        new_worker: NewWorker = Worker,
    ) -> None:
        """`reload(then)` takes in the present catalog, if that can be had, and calls back."""
        super().__init__(files, call_soon, new_worker)
        self._catalog = catalog
        self._reload = reload

    @staticmethod
    def _failed(error: OSError) -> Failed:
        return _Gone(str(error)) if isinstance(error, Gone) else Failed(str(error))

    def read_cached(self, extents: Sequence[Extent]) -> list[Buffer] | None:
        """See `JournalReader.read_cached`."""
        for extent in extents:
            assert isinstance(extent.place, Place)
            segment = extent.place.rows.segment
            if segment.handle is None:  # it opens at once, unlike a file
                try:
                    segment.handle = self._files.open(segment.name)
                except OSError:
                    return None
                self.seal(segment)
        return super().read_cached(extents)

    def read(self, extents: Sequence[Extent], done: Done) -> None:
        """See `JournalReader.read`."""

        def first(results: list[Buffer | Failed]) -> None:
            if self._closed or not any(isinstance(each, _Gone) for each in results):
                done(results)
            else:
                self._reload(lambda: self._again(extents, results, done))

        super().read(extents, first)

    def _again(self, extents: Sequence[Extent], results: list[Buffer | Failed], done: Done) -> None:
        if self._closed:
            done(results)
            return
        found: dict[int, Extent] = {}
        for at, (extent, result) in enumerate(zip(extents, results, strict=True)):
            if isinstance(result, _Gone) and (again := self._find(extent)) is not None:
                found[at] = again

        def second(again: list[Buffer | Failed]) -> None:
            for at, result in zip(found, again, strict=True):
                results[at] = result
            done(results)

        super().read(list(found.values()), second)

    def _find(self, extent: Extent) -> Extent | None:
        """Find the same batches again; None: they are not what they were."""
        assert isinstance(extent.place, Place)
        stream = extent.place.rows.stream
        try:
            found = self._catalog.index.find(stream, extent.first_offsets[0], extent.last_offset + 1, extent.size)
        except DamagedIndex:
            return None  # it has been told
        if len(found) != 1:
            return None
        (again,) = found
        return again if [*again.last_offsets] == [*extent.last_offsets] and again.size == extent.size else None
