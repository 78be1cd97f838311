"""Only where `make test-with WHAT=streams` runs (Java and Maven)."""

import os

# Elsewhere nothing here is even imported.
collect_ignore_glob = [] if os.environ.get("EXACTA_TEST_STREAMS") else ["test_*.py"]
