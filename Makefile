# Every target sets up what it needs in .venv; Python >= 3.11 and make are enough (no Java, no Docker, no root).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python keeps what it has compiled, also where the environment forbids that: otherwise each of the hundreds of servers
# that the tests start would compile all modules anew, which takes a second.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help demo demo-pulsar test test-canaries test-spark test-with soak simulate simulate-all check bench bench-kafka bench-growth \
	bench-storage bench-spark bench-cluster bench-pulsar bench-one-log bench-sidecar dist test-dist docs docs-site pulsar-messages clean

help:  ## list the targets
	@grep -hE '^[a-z0-9.-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 20

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Exacta needs Python >= 3.11; name one: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# One stamp per extra: installing again only when pyproject.toml changed.
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@touch $@

demo: $(VENV)/.installed-demo$(if $(findstring --brokers,$(ARGS)),-cluster)  ## a Spark pipeline under kill -9: nothing lost, nothing twice
	$(BIN)/exacta demo $(ARGS)

demo-pulsar: $(VENV)/.installed-demo-pulsar  ## Pulsar's client produces, Spark transforms, Kafka's client reads, under kill -9
	$(BIN)/exacta demo --producer pulsar $(ARGS)

# Many tests wait for a client's own pauses: four at a time, on two cores.
test: $(VENV)/.installed-test  ## all tests but those in real Spark and of planted bugs, SHARE=0 to 9 of each sweep (seven minutes)
	$(BIN)/python -m pytest -n 4 --dist worksteal -m 'not spark and not canary' $(ARGS)

test-canaries: $(VENV)/.installed-test  ## the simulation finds each planted bug (minutes)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m canary tests/simulation $(ARGS)

# How many processes the whole campaign kills with signal 9. A share of them dies each time.
KILLS ?= 104

# The files that hold such tests, unless ARGS names some: looking through all others takes each process ten seconds.
SPARK_TESTS = $(shell grep -rlE 'mark\.spark\b' tests --include='test_*.py')

# Each process has a Spark of its own, and often waits for another one to start.
test-spark: $(VENV)/.installed-test  ## source, sink and demo in real Spark, a share of KILLS=104 times kill -9 (ten minutes)
	$(BIN)/python -m tests.spark.quick_java
	EXACTA_TEST_KILLS=$(KILLS) $(BIN)/python -m pytest -n 2 --dist worksteal -m spark $(if $(filter tests/%,$(ARGS)),,$(SPARK_TESTS)) $(ARGS)

# Its PySpark must be of the connector's version, so it has an environment of its own.
.venv-spark-kafka/.installed: pyproject.toml | $(BIN)/python
	$(PYTHON) -m venv .venv-spark-kafka
	.venv-spark-kafka/bin/python -m pip install --quiet --upgrade pip
	.venv-spark-kafka/bin/python -m pip install --quiet --editable '.[test]' 'pyspark==4.2.0'
	@touch $@

# Worlds, and the first of them; CANARY=name plants a bug, which must be found.
SEEDS ?= 1000
FIRST_SEED ?= 0

simulate: $(VENV)/.installed-test  ## SEEDS=1000 simulated worlds of broker, clients and faults (a quarter of an hour)
	$(BIN)/python -m simulation --seeds $(SEEDS) --first-seed $(FIRST_SEED) --jobs 2 $(if $(CANARY),--canary $(CANARY)) $(ARGS)

simulate-all: $(VENV)/.installed-test  ## a crash at every call to the disk in all short histories, at every byte, and each planted bug (minutes)
	$(BIN)/python -m simulation --crash-points 3
	SHARE=all EXACTA_TEST_CANARIES=all $(BIN)/python -m pytest -n 2 --dist worksteal tests/simulation tests/adapters/local/test_crashes.py $(ARGS)

# Each sweep runs whole here: in the targets that CI runs in shares, too.
soak:  ## all the long runs: each sweep whole, worlds, hostile bytes, power cuts, exacta verify and Pulsar's clients under kill -9 (hours; Java, Maven)
	$(MAKE) test test-spark SHARE=all
	$(MAKE) simulate
	$(MAKE) simulate-all
	$(MAKE) test-with WHAT=fuzz
	$(MAKE) test-with WHAT=power
	$(MAKE) test-with WHAT=verify SECONDS=600
	$(MAKE) test-with WHAT=cluster
	$(MAKE) test-with WHAT=two-phase KILLS=300
	$(MAKE) test-with WHAT=pulsar KILLS=300 ARGS="-k transformed_once"

# What a packed environment holds: the extra for executors, which has no PySpark.
.venv-packed/.installed: pyproject.toml | $(BIN)/python
	$(PYTHON) -m venv .venv-packed
	.venv-packed/bin/python -m pip install --quiet --upgrade pip
	.venv-packed/bin/python -m pip install --quiet '.[spark-worker]' 'venv-pack2>=0.9'
	@touch $@

# tests/suites.py holds what a suite runs; here stands only the environment that it runs in.
OLDER_SPARK = $(filter spark-connector spark-kafka spark-4.2,$(WHAT))
WITH_JAVA = $(filter java pulsar,$(WHAT))
EXTRA = $(if $(WITH_JAVA),test-java,$(if $(filter fuzz,$(WHAT)),fuzz,test))
SUITE_VENV = $(if $(OLDER_SPARK),.venv-spark-kafka,$(VENV))
SUITE_INSTALLED = $(SUITE_VENV)/.installed$(if $(OLDER_SPARK),,-$(EXTRA))
PACKED = $(filter spark-packed,$(WHAT))

test-with: $(SUITE_INSTALLED) $(if $(PACKED),.venv-packed/.installed)  ## WHAT=java|go|pulsar|tools|...: other people's suites and long campaigns; without WHAT a list of them
	$(if $(PACKED),.venv-packed/bin/python -m pip install --quiet --force-reinstall --no-deps .)
	@$(SUITE_VENV)/bin/python -m tests.suites "$(WHAT)" $(ARGS)

# `make test-pulsar` is what the README says, and the same as `make test-with WHAT=pulsar`.
test-%:
	@$(MAKE) --no-print-directory test-with WHAT=$*

check: $(VENV)/.installed-check  ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed-test  ## the benchmark on Exacta alone
	$(BIN)/python -m benchmarks $(ARGS)

bench-kafka: $(VENV)/.installed-test  ## the benchmark beside Apache Kafka (needs Java and Maven)
	$(BIN)/python -m benchmarks --beside-kafka $(ARGS)

bench-growth: $(VENV)/.installed-test  ## transactions beside a million ids, 10,000 partitions, 10,000 open transactions (minutes)
	$(BIN)/python -m benchmarks.growth $(ARGS)

bench-storage: $(VENV)/.installed-test  ## a log of 10 GB: start and memory; and producers beside the freeing of space (ten minutes)
	$(BIN)/python -m benchmarks.storage $(ARGS)
	$(BIN)/python -m benchmarks.storage.pauses

bench-spark: .venv-spark-kafka/.installed  ## source and sink beside Spark's own connector (needs Java and Maven)
	.venv-spark-kafka/bin/python -m benchmarks.spark $(ARGS)

bench-one-log: $(VENV)/.installed-test  ## reading the other protocol's messages, and joint transactions, by turns (minutes)
	$(BIN)/python -m benchmarks.one_log $(ARGS)

bench-sidecar: $(VENV)/.installed-test  ## sidecar topics beside marker topics, by turns (a quarter of an hour)
	$(BIN)/python -m benchmarks.sidecar $(ARGS)

bench-cluster: $(VENV)/.installed-test  ## brokers over one PostgreSQL: transactions by turns with one broker, takeover, a follower's lag (minutes)
	$(BIN)/python -m benchmarks.cluster $(ARGS)

bench-pulsar: $(VENV)/.installed-test  ## Pulsar's own client beside Apache Pulsar (needs a JDK and Maven; forty minutes)
	$(BIN)/python -m benchmarks.pulsar $(ARGS)

docs: $(VENV)/.installed-test  ## write the pages that are made from code
	$(BIN)/python -m website.pages

# The theme warns of a MkDocs that pyproject.toml does not allow.
docs-site: $(VENV)/.installed-docs  ## the documentation as a site, in site/; a dead link is an error, and a page too wide for a screen (needs Chromium)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict $(ARGS)
	$(BIN)/python -m website.widths site

# The wheel is made of the source distribution, so that nothing is missing there.
dist: $(VENV)/.installed-dist  ## a wheel, a source distribution and their bill of materials, in dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python -m website.bill_of_materials dist

test-dist: dist  ## the wheel alone in an empty environment: the README's first screen, and a new user's hour (needs pip's index)
	EXACTA_TEST_DIST=dist $(BIN)/python -m pytest tests/installed $(ARGS)

pulsar-messages: $(VENV)/.installed-test  ## write the code for Pulsar's messages anew
	cd src && ../$(BIN)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. exacta/protocol/pulsar/messages.proto

clean:  ## remove the virtual environments and caches
	rm -rf dist site .venv .venv-* .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
