"""Attackers that a coverage-guided fuzzer breeds (atheris, libFuzzer): `make test-fuzz SECONDS=600`.

Each target has a process of its own and its part of the time. Bytes that reach something new are kept in `.cache/fuzz`
and bred further the next time. Bytes that make a target fail are written there, too, and the process ends with their
path: `python -m tests.fuzz.coverage_guided NAME PATH` tries them once more.
"""

import subprocess
import sys
from pathlib import Path

CACHE = Path(".cache/fuzz")
LONGEST_INPUT_BYTES = 1_500
MOST_MEMORY_MB = 1_024
"""A process whose memory grows beyond it has found something that is not bounded."""
LONGEST_INPUT_SECONDS = 30


def main(arguments: list[str]) -> int:
    """Run all targets for this many seconds together; or one target, by name, on files or for some seconds."""
    if len(arguments) == 1:
        from tests.fuzz.targets import TARGETS

        for name in TARGETS:
            each_s = max(1, int(arguments[0]) // len(TARGETS))
            command = [sys.executable, "-m", "tests.fuzz.coverage_guided", name, str(each_s)]
            status = subprocess.run(command, check=False).returncode
            if status:
                return status
        return 0
    breed(*arguments)
    return 0


def breed(name: str, until: str) -> None:
    """Attack for this many seconds, or once with the bytes in a file. It ends the process."""
    import atheris

    with atheris.instrument_imports(include=["exacta"]):
        from tests.fuzz.targets import TARGETS
        from tests.fuzz.watched import Watch

    Watch.slower = 10.0
    corpus = CACHE / name
    corpus.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_len={LONGEST_INPUT_BYTES}",
        f"-rss_limit_mb={MOST_MEMORY_MB}",
        f"-timeout={LONGEST_INPUT_SECONDS}",
        f"-artifact_prefix={CACHE / name}-",
        "-print_final_stats=1",
        "-verbosity=0",
    ]
    where = [f"-max_total_time={until}", str(corpus)] if until.isdigit() else [until]
    atheris.Setup([sys.argv[0], *options, *where], TARGETS[name].attack)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
