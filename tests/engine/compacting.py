"""What compacts the plain records of these tests: `key=value`, no two of them the same."""

from exacta.ports.compaction import Buffer, Rewritten, Rules


class LastValues:
    """The last value of each key stays, and every marker; of aborted records none, as `rules` says where they lie."""

    unreadable = 0

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._last: dict[bytes, bytes] = {}

    def check(self, batch: Buffer, first_offset: int, last_offset: int) -> None:
        pass

    def _is_aborted(self, content: bytes) -> bool:
        return bool(self.rules.aborted) and b"aborted" in content

    def moved(self, batch: Buffer, first_offset: int, append_time_ms: int) -> Buffer:
        return batch

    def note(self, batch: Buffer) -> None:
        key, _, _ = bytes(batch).partition(b"=")
        if not self._is_aborted(bytes(batch)):
            self._last[key] = bytes(batch)

    def rewrite(self, batch: Buffer, is_last: bool) -> Rewritten | None:
        content = bytes(batch)
        key, _, _ = content.partition(b"=")
        if content.startswith(b"<"):
            return Rewritten(batch, 0, 0)
        if self._last.get(key, content) == content and not self._is_aborted(content):
            return Rewritten(batch, 1, 0)
        return Rewritten(b"-", 0, -1) if is_last else None


def last_values(rules: Rules, slice_number: int = 0, slice_count: int = 1) -> LastValues:
    """Implement `exacta.ports.compaction.Compact`."""
    return LastValues(rules)
