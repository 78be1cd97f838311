"""One file of the simulated disk: the content as processes see it, as the disk has it, and the changes between."""

SECTOR_BYTES = 512


class SimulatedFile:
    """The content as processes see it, as the disk has it, and the changes between the two."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.durable = bytearray(content)
        self.pending: list[tuple[int, bytes] | int] = []  # writes, and sizes to which the file was cut

    def write(self, offset: int, data: bytes) -> None:
        """Change the content, and note what the disk lacks."""
        self.pending.append((offset, data))
        write(self.content, offset, data)

    def truncate(self, size: int) -> None:
        """Cut the content, and note what the disk lacks."""
        self.pending.append(size)
        del self.content[size:]

    def sync(self) -> None:
        """Let the disk have all of it."""
        for change in self.pending:
            if isinstance(change, int):
                del self.durable[change:]
            else:
                write(self.durable, *change)
        self.pending.clear()

    def fail_to_sync(self) -> None:
        """Forget what the disk lacks: the pages count as clean."""
        self.pending.clear()


def write(content: bytearray, offset: int, data: bytes) -> None:
    """Write into a content, which grows with zeros where the write begins behind its end."""
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def sectors(offset: int, data: bytes) -> list[tuple[int, bytes]]:
    """Cut a write where the disk's sectors end."""
    parts: list[tuple[int, bytes]] = []
    at = 0
    while at < len(data):
        end = at + SECTOR_BYTES - (offset + at) % SECTOR_BYTES
        parts.append((offset + at, data[at:end]))
        at = end
    return parts
