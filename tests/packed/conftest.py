"""Only where `make test-with WHAT=spark-packed` runs: it makes the environment that is to be packed."""

import os

# The virtual environment that has `exacta-log[spark-worker]` and venv-pack, and no PySpark.
ENVIRONMENT = os.environ.get("EXACTA_TEST_PACKED")

collect_ignore_glob = [] if ENVIRONMENT else ["test_*.py"]
