"""What a log costs: memory and start with many gigabytes (`benchmarks.storage`), freeing space (`.pauses`)."""

from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache"
