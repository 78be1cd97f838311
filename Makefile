# Every target sets up what it needs in .venv; Python >= 3.11 and make are enough (no Java, no Docker, no root).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python keeps what it has compiled, also where the environment forbids that: otherwise each of the hundreds of servers
# that the tests start would compile all modules anew, which takes a second.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help demo demo-pulsar test test-canaries soak simulate simulate-all test-java test-tools test-streams test-franz-go test-prometheus test-two-phase test-exactly-once test-pulsar test-pulsar-go test-pulsar-differential test-power test-verify test-differential test-spark test-spark-connector test-spark-4.2 test-spark-packed test-spark-kafka \
	test-spark-cluster test-spark-kafka-cluster check bench bench-kafka bench-growth bench-storage bench-spark bench-pulsar bench-one-log bench-sidecar dist test-dist docs docs-site pulsar-messages clean

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

demo: $(VENV)/.installed-demo  ## a Spark pipeline under kill -9: nothing lost, nothing twice
	$(BIN)/exacta demo $(ARGS)

demo-pulsar: $(VENV)/.installed-demo-pulsar  ## Pulsar's client produces, Spark transforms, Kafka's client reads, under kill -9
	$(BIN)/exacta demo --producer pulsar $(ARGS)

# Many tests wait for a client's own pauses: three at a time, on two cores.
test: $(VENV)/.installed-test  ## all tests but those in real Spark and of planted bugs (ten minutes)
	$(BIN)/python -m pytest -n 3 -m 'not spark and not canary' $(ARGS)

test-canaries: $(VENV)/.installed-test  ## the simulation finds each planted bug (minutes)
	$(BIN)/python -m pytest -n 2 -m canary tests/simulation $(ARGS)

# How many processes a campaign kills with signal 9.
KILLS ?= 104

# The files that hold such tests: looking through all others takes each process ten seconds.
SPARK_TESTS = $(shell grep -rlE 'mark\.spark\b' tests --include='test_*.py')

# Each process has a Spark of its own, and often waits for another one to start.
test-spark: $(VENV)/.installed-test  ## source, sink and demo in real Spark, KILLS=104 times kill -9 (half an hour)
	$(BIN)/python -m tests.spark.quick_java
	EXACTA_TEST_KILLS=$(KILLS) $(BIN)/python -m pytest -n 2 --dist worksteal -m spark $(SPARK_TESTS) $(ARGS)

# Its PySpark must be of the connector's version, so it has an environment of its own.
.venv-spark-kafka/.installed: pyproject.toml | $(BIN)/python
	$(PYTHON) -m venv .venv-spark-kafka
	.venv-spark-kafka/bin/python -m pip install --quiet --upgrade pip
	.venv-spark-kafka/bin/python -m pip install --quiet --editable '.[test]' 'pyspark==4.2.0'
	@touch $@

test-spark-connector: .venv-spark-kafka/.installed  ## Spark's own Kafka connector against Exacta (needs Java and Maven)
	EXACTA_TEST_SPARK_CONNECTOR=1 .venv-spark-kafka/bin/python -m pytest tests/spark_connector $(ARGS)

# Both transaction protocols, each with all of the sink's kills, and Spark's own sink beside it.
ON_KAFKA = EXACTA_TEST_BROKER=kafka EXACTA_TEST_KILLS=$(KILLS)
SPARK_KAFKA_PYTEST = .venv-spark-kafka/bin/python -m pytest
FAILURES = tests/spark/test_kill.py tests/spark/test_failures.py tests/spark/test_two_drivers.py tests/spark/sink/test_lost_markers.py

test-spark-kafka: .venv-spark-kafka/.installed  ## kill -9 of Spark and Apache Kafka (needs Java and Maven; an hour)
	$(ON_KAFKA) EXACTA_TEST_TRANSACTION_VERSION=2 $(SPARK_KAFKA_PYTEST) $(FAILURES) $(ARGS)
	$(ON_KAFKA) EXACTA_TEST_TRANSACTION_VERSION=1 $(SPARK_KAFKA_PYTEST) $(FAILURES) $(ARGS)
	$(ON_KAFKA) EXACTA_TEST_SPARK_CONNECTOR=1 $(SPARK_KAFKA_PYTEST) tests/spark_connector/test_killed.py $(ARGS)

# Worlds, and the first of them; CANARY=name plants a bug, which must be found.
SEEDS ?= 1000
FIRST_SEED ?= 0

simulate: $(VENV)/.installed-test  ## SEEDS=1000 simulated worlds of broker, clients and faults (a quarter of an hour)
	$(BIN)/python -m simulation --seeds $(SEEDS) --first-seed $(FIRST_SEED) --jobs 2 $(if $(CANARY),--canary $(CANARY)) $(ARGS)

OF_CRASHES = tests/simulation tests/adapters/local/test_crashes.py

simulate-all: $(VENV)/.installed-test  ## a crash at every call to the disk in all short histories, at every byte, and each planted bug (minutes)
	$(BIN)/python -m simulation --crash-points 3
	EXACTA_TEST_CRASH_POINTS=all EXACTA_TEST_WORLDS=200 EXACTA_TEST_CANARIES=all $(BIN)/python -m pytest -n 2 $(OF_CRASHES) $(ARGS)

soak:  ## all the long runs: worlds, crash points, planted bugs, power cuts, exacta verify and Pulsar's clients under kill -9 (three hours; Java, Maven)
	$(MAKE) simulate
	$(MAKE) simulate-all
	$(MAKE) test-power
	$(MAKE) test-verify VERIFY_SECONDS=600
	$(MAKE) test-two-phase TWO_PHASE_KILLS=300
	$(MAKE) test-pulsar PULSAR_KILLS=300 ARGS="-k transformed_once"

test-java: $(VENV)/.installed-test-java  ## Kafka's own client in the conformance scenarios (needs Java and Maven; minutes)
	EXACTA_TEST_JAVA=1 EXACTA_TEST_TRANSACTION_VERSION=2 $(BIN)/python -m pytest tests/conformance $(ARGS)
	EXACTA_TEST_JAVA=1 EXACTA_TEST_TRANSACTION_VERSION=1 $(BIN)/python -m pytest tests/conformance $(ARGS)

test-tools: $(VENV)/.installed-test  ## Kafka's own command line tools (needs Java and Maven; two minutes)
	EXACTA_TEST_TOOLS=1 $(BIN)/python -m pytest tests/tools $(ARGS)

# Of the application and the broker; EXACTA_TEST_BROKER=kafka: of Apache Kafka.
STREAMS_KILLS ?= 15

test-streams: $(VENV)/.installed-test  ## Kafka Streams under STREAMS_KILLS=15 times kill -9 (needs Java and Maven; minutes)
	EXACTA_TEST_STREAMS=1 EXACTA_TEST_KILLS=$(STREAMS_KILLS) $(BIN)/python -m pytest tests/streams $(ARGS)

POWER_CUTS ?= 100

test-power: $(VENV)/.installed-test  ## POWER_CUTS=100 times a machine without power under a real server and clients (half an hour)
	EXACTA_TEST_POWER_CUTS=$(POWER_CUTS) $(BIN)/python -m pytest tests/power $(ARGS)

# How long each of the two is checked.
VERIFY_SECONDS ?= 300

test-verify: $(VENV)/.installed-test  ## `exacta verify`, VERIFY_SECONDS=300 on Exacta and on Apache Kafka, both killed again and again (Java, Maven)
	EXACTA_TEST_VERIFY=$(VERIFY_SECONDS) $(BIN)/python -m pytest tests/verify $(ARGS)
	EXACTA_TEST_VERIFY=$(VERIFY_SECONDS) EXACTA_TEST_BROKER=kafka $(BIN)/python -m pytest tests/verify/test_run.py -k long $(ARGS)

test-franz-go: $(VENV)/.installed-test  ## franz-go, a client in Go, also under kill -9 (needs Go 1.26; two minutes)
	EXACTA_TEST_FRANZ_GO=1 $(BIN)/python -m pytest tests/franz_go $(ARGS)

test-prometheus: $(VENV)/.installed-test  ## a real Prometheus scrapes the broker and takes the alert rules (Debian's apt-get; seconds)
	$(BIN)/python -m tests.metrics.prometheus
	$(BIN)/python -m pytest tests/metrics $(ARGS)

# How many blows each of the two campaigns deals. Without a PostgreSQL on the machine Debian's packages are unpacked
# into .cache, which takes no root.
TWO_PHASE_KILLS ?= 100

test-two-phase: $(VENV)/.installed-test  ## rows of SQLite and PostgreSQL with messages, killed at every step, then TWO_PHASE_KILLS=100 times each (twenty minutes)
	$(BIN)/python -m tests.databases.postgresql
	EXACTA_TEST_TWO_PHASE=$(TWO_PHASE_KILLS) $(BIN)/python -m pytest tests/databases tests/examples/test_shop.py $(ARGS)

# How many blows each campaign of `exacta.exactly_once` deals.
EXACTLY_ONCE_KILLS ?= 50

test-exactly-once: $(VENV)/.installed-test  ## `exacta.exactly_once`, EXACTLY_ONCE_KILLS=50 times killed or frozen, on Exacta and on Apache Kafka (Java, Maven; half an hour)
	EXACTA_TEST_EXACTLY_ONCE=$(EXACTLY_ONCE_KILLS) $(BIN)/python -m pytest tests/transform/test_campaign.py $(ARGS)
	EXACTA_TEST_EXACTLY_ONCE=$(EXACTLY_ONCE_KILLS) EXACTA_TEST_BROKER=kafka $(BIN)/python -m pytest tests/transform/test_campaign.py $(ARGS)

# Of the broker and its clients in Java; EXACTA_TEST_PULSAR=pulsar://host:port: the scenarios on an Apache Pulsar, of
# which only the clients are killed.
PULSAR_KILLS ?= 20

test-pulsar: $(VENV)/.installed-test-java  ## Pulsar's own clients for Java and Python, PULSAR_KILLS=20 times kill -9 (Java and Maven; a quarter of an hour)
	EXACTA_TEST_JAVA=1 EXACTA_TEST_KILLS=$(PULSAR_KILLS) $(BIN)/python -m pytest tests/pulsar_clients $(ARGS)

# They listen where the client's tests look for a broker: ports 6650, 6651, 8080 and 8443 must be free.
test-pulsar-go: $(VENV)/.installed-test  ## the own tests of Pulsar's client for Go, unmodified, and PULSAR_KILLS=20 times kill -9 (needs Go 1.26; ten minutes)
	EXACTA_TEST_PULSAR_GO=1 EXACTA_TEST_KILLS=$(PULSAR_KILLS) $(BIN)/python -m pytest tests/pulsar_go $(ARGS)

# How many sequences of frames Exacta and Apache Kafka must answer alike, and which: another SEED makes others.
SEQUENCES ?= 10000
SEED ?= 1

ASKED_OF_KAFKA = tests/kafka/test_transaction_errors.py tests/kafka/test_pipelined_reads.py tests/kafka/test_internal_topics.py

test-differential: $(VENV)/.installed-test  ## random frames on Exacta and on Apache Kafka, SEQUENCES=10000 (Java, Maven; minutes)
	EXACTA_TEST_DIFFERENTIAL=$(SEQUENCES) EXACTA_TEST_SEED=$(SEED) $(BIN)/python -m pytest tests/differential $(ARGS)
	EXACTA_TEST_BROKER=kafka $(BIN)/python -m pytest $(ASKED_OF_KAFKA) $(ARGS)

# How many programs, and the seed of the first one. PULSAR's brokers need acknowledgmentAtBatchIndexLevelEnabled=true.
PROGRAMS ?= 500
PULSAR ?= pulsar://127.0.0.1:6650
PULSAR_WEB ?= http://127.0.0.1:8080

test-pulsar-differential: $(VENV)/.installed-test  ## random commands on Exacta and on an Apache Pulsar that runs at PULSAR, PROGRAMS=500 (minutes)
	EXACTA_TEST_PULSAR=$(PULSAR) EXACTA_TEST_PULSAR_WEB=$(PULSAR_WEB) EXACTA_TEST_PROGRAMS=$(PROGRAMS) EXACTA_TEST_SEED=$(SEED) \
		$(BIN)/python -m pytest tests/pulsar/differential $(ARGS)

# Ten Java virtual machines: master, workers (in network namespaces, as root), executors, drivers; and the nodes of Apache Kafka.
CLUSTER_KILLS ?= 24
ON_A_CLUSTER = EXACTA_TEST_SPARK_CLUSTER=1 EXACTA_TEST_KILLS=$(CLUSTER_KILLS)

test-spark-cluster: $(VENV)/.installed-test  ## kill -9 in a standalone Spark cluster of two workers (fifteen minutes)
	$(ON_A_CLUSTER) $(BIN)/python -m pytest tests/spark_cluster $(ARGS)

test-spark-kafka-cluster: $(VENV)/.installed-test  ## the same, on three secured nodes of Apache Kafka (Java and Maven)
	$(ON_A_CLUSTER) EXACTA_TEST_BROKER=kafka $(BIN)/python -m pytest tests/spark_cluster $(ARGS)

OLDEST = tests/spark/test_calls.py tests/spark/test_query.py tests/spark/test_reading.py

test-spark-4.2: .venv-spark-kafka/.installed  ## the calls that source and sink lean on, and queries, in PySpark 4.2.0
	.venv-spark-kafka/bin/python -m pytest -m spark $(OLDEST) $(ARGS)

# What a packed environment holds: the extra for executors, which has no PySpark.
.venv-packed/.installed: pyproject.toml | $(BIN)/python
	$(PYTHON) -m venv .venv-packed
	.venv-packed/bin/python -m pip install --quiet --upgrade pip
	.venv-packed/bin/python -m pip install --quiet '.[spark-worker]' 'venv-pack2>=0.9'
	@touch $@

test-spark-packed: $(VENV)/.installed-test .venv-packed/.installed  ## executors that get exacta by --archives
	.venv-packed/bin/python -m pip install --quiet --force-reinstall --no-deps .
	EXACTA_TEST_PACKED=.venv-packed $(BIN)/python -m pytest tests/packed $(ARGS)

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

bench-pulsar: $(VENV)/.installed-test  ## Pulsar's own client beside Apache Pulsar (needs a JDK and Maven; forty minutes)
	$(BIN)/python -m benchmarks.pulsar $(ARGS)

docs: $(VENV)/.installed-test  ## write the pages that are made from code
	$(BIN)/python -m exacta.spark.options.reference > docs/reference/spark-options.md
	$(BIN)/python -m exacta.cli.configuration_reference > docs/reference/configuration.md
	$(BIN)/python -m exacta.kafka.coverage > docs/reference/protocol.md
	$(BIN)/python -m exacta.kafka.transaction_errors > docs/reference/transaction-errors.md
	$(BIN)/python -m exacta.cli.reference > docs/reference/commands.md
	$(BIN)/python -m exacta.verify.report.reference > docs/reference/anomalies.md
	$(BIN)/python -m exacta.metrics.reference > docs/reference/metrics.md
	$(BIN)/python -m website.python_api > docs/reference/python-api.md

# The theme warns of a MkDocs that pyproject.toml does not allow.
docs-site: $(VENV)/.installed-docs  ## the documentation as a site, in site/; a link or an anchor that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict $(ARGS)

# The wheel is made of the source distribution, so that nothing is missing there.
dist: $(VENV)/.installed-dist  ## a wheel and a source distribution, in dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist

test-dist: dist  ## the wheel alone in an empty environment: the README's first screen, and a new user's hour (needs pip's index)
	EXACTA_TEST_DIST=dist $(BIN)/python -m pytest tests/installed $(ARGS)

pulsar-messages: $(VENV)/.installed-test  ## write the code for Pulsar's messages anew
	cd src && ../$(BIN)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. exacta/protocol/pulsar/messages.proto

clean:  ## remove the virtual environments and caches
	rm -rf dist site .venv .venv-* .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
