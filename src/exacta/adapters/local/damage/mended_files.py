"""Single files of a damaged journal put right, by a flipped bit or by what says the same elsewhere.

They are the headers of segments, the files `format`, `start` and `compacted`, and snapshots. Groups are put right in
`segment_walk`.
"""

from exacta.adapters.local.damage.mended_journal import Patch, flipped_bit, with_one_bit_put_back
from exacta.adapters.local.damage.survey import Mended, Survey
from exacta.adapters.local.files import read_file
from exacta.adapters.local.format import (
    COMPACTED_NAME,
    FORMAT_CONTENT,
    FORMAT_NAME,
    GROUP_HEADER_BYTES,
    MARK_BYTES,
    SEGMENT_HEADER_BYTES,
    SEGMENT_SUFFIX,
    SNAPSHOT_HEADER_BYTES,
    SNAPSHOT_SUFFIX,
    START_NAME,
    SegmentHeader,
    compacted_of,
    file_name,
    pack_segment_header,
    positions_of,
    segments_of,
    unpack_group_header,
    unpack_segment_header,
    unpack_snapshot,
)
from exacta.adapters.local.opening import first_position
from exacta.adapters.local.opening.recovery import UnsupportedFormat
from exacta.adapters.local.space import compacted_segments


def mend_files(found: Survey) -> None:
    """Put right what can be, in the view; raise UnsupportedFormat where nothing is of our version."""
    _mend_format(found)  # first of all: a header that is made from a group is of our version, whatever it was
    _mend_headers(found)
    _mend_start(found)
    _mend_compacted(found)
    _mend_snapshots(found)


def _mend_headers(found: Survey) -> None:
    """Make the headers of segments from the groups that follow, or from the next segment's header; last ones first."""
    segments = segments_of(found.view.names(), SEGMENT_SUFFIX)
    next_base: int | None = None
    next_checksum: int | None = None
    for each in (*compacted_of(found.view.names(), SEGMENT_SUFFIX), *reversed(segments)):
        base, generation, is_compacted = each
        name = each.name(SEGMENT_SUFFIX)
        with found.opened(name) as handle:
            size = found.view.size(handle)
            data = found.view.read(handle, SEGMENT_HEADER_BYTES + GROUP_HEADER_BYTES, 0)
        header = unpack_segment_header(data)
        if header is None and len(data) >= SEGMENT_HEADER_BYTES:
            head = data[:SEGMENT_HEADER_BYTES]
            mended = with_one_bit_put_back(head, unpack_segment_header)
            if mended is not None:
                header = mended[1]
                found.view.patch(name, [mended[0]])
                found.mended.append(Mended(name, mended[0].offset, "a flipped bit of the header"))
            elif len(data) == SEGMENT_HEADER_BYTES + GROUP_HEADER_BYTES:
                header = _header_from_group(base, generation, data[SEGMENT_HEADER_BYTES:])
                if header is not None and is_compacted:
                    header = header._replace(size=size)
                elif header is not None and generation:
                    header = (
                        None
                        if next_base is None or next_checksum is None
                        else header._replace(end=next_base, last_checksum=next_checksum, size=size)
                    )
                if header is not None:
                    found.view.patch(name, [Patch(0, pack_segment_header(header))])
                    found.mended.append(Mended(name, 0, "the header, which its first group and its name give"))
        if is_compacted:
            continue
        if header is not None and header.base == base:
            next_base, next_checksum = base, header.previous_checksum
        else:
            next_base, next_checksum = base, None


def _header_from_group(base: int, generation: int, data: bytes) -> SegmentHeader | None:
    mark = data[:MARK_BYTES]
    first = unpack_group_header(data, mark)
    if first is None or first.position != base:
        return None
    return SegmentHeader(base, mark, first.previous_checksum, generation)


def _mend_format(found: Survey) -> None:
    view = found.view
    names = view.names()
    content = read_file(found.files, FORMAT_NAME) if FORMAT_NAME in names else None
    if content == FORMAT_CONTENT or (content is None and not segments_of(names, SEGMENT_SUFFIX)):
        return
    # Each segment says which version it has.
    for each in segments_of(names, SEGMENT_SUFFIX):
        with found.opened(each.name(SEGMENT_SUFFIX)) as handle:
            if unpack_segment_header(view.read(handle, SEGMENT_HEADER_BYTES, 0)) is not None:
                view.put(FORMAT_NAME, FORMAT_CONTENT)
                found.mended.append(Mended(FORMAT_NAME, 0, "the version, which each segment has as well"))
                return
    raise UnsupportedFormat(f"{view.directory / FORMAT_NAME} is not of this version, and no segment is: use that one")


def _mend_start(found: Survey) -> None:
    view, names = found.view, found.view.names()
    if first_position.load(found.files, names) is not None:
        return
    mended = with_one_bit_put_back(read_file(found.files, START_NAME), first_position.unpack_start)
    if mended is not None:
        view.put(START_NAME, first_position.pack_start(mended[1]))
    else:
        segments = segments_of(names, SEGMENT_SUFFIX)
        view.put(START_NAME, first_position.pack_start(segments[0][0] if segments else 0))
    found.mended.append(Mended(START_NAME, 0, "where the journal begins, which its first segment's name says"))


def _mend_compacted(found: Survey) -> None:
    view, names = found.view, found.view.names()
    if compacted_segments.load(found.files, names) is not None:
        return
    mended = with_one_bit_put_back(read_file(found.files, COMPACTED_NAME), compacted_segments.unpack_named)
    if mended is not None:
        view.put(COMPACTED_NAME, compacted_segments.pack_named(mended[1]))
    else:
        numbers = [each.base for each in compacted_of(names, SEGMENT_SUFFIX)]
        view.put(
            COMPACTED_NAME,
            compacted_segments.pack_named(compacted_segments.Named(numbers, max(numbers, default=-1) + 1)),
        )
    found.mended.append(Mended(COMPACTED_NAME, 0, "which compacted segments there are, which their names say"))


def _mend_snapshots(found: Survey) -> None:
    for position in positions_of(found.view.names(), SNAPSHOT_SUFFIX):
        name = file_name(position, SNAPSHOT_SUFFIX)
        data = read_file(found.files, name)
        if unpack_snapshot(data, position) is None:
            patch = _mended_snapshot(data, position)
            if patch is None:
                found.unusable.append(name)
                continue
            found.view.patch(name, [patch])
            found.mended.append(Mended(name, patch.offset, "a flipped bit"))
        found.snapshots.append(position)


def _mended_snapshot(data: bytes, position: int) -> Patch | None:
    head = data[:SNAPSHOT_HEADER_BYTES]
    if len(head) < SNAPSHOT_HEADER_BYTES:
        return None
    checksum = int.from_bytes(head[12:16], "little")
    patch = flipped_bit(memoryview(data)[16:], checksum)
    if patch is not None:
        candidates = [Patch(patch.offset + 16, patch.content)]
    else:  # or it is the checksum that is wrong, or what stands before it
        candidates = [Patch(at, bytes((data[at] ^ 1 << bit,))) for at in range(16) for bit in range(8)]
    for each in candidates:
        if unpack_snapshot(data[: each.offset] + each.content + data[each.offset + 1 :], position) is not None:
            return each
    return None
