"""The benchmark: what small transactions, bulk data and a start cost, on any broker that speaks Kafka's protocol.

`python -m benchmarks` measures Exacta alone, `--beside-kafka` measures it in one run beside Apache Kafka, `--bootstrap`
measures a broker that runs already. Every figure that the project publishes comes from here.

Theory of operation: a *case* (`cases/`) sets up topics and runs *loads*, each in fresh client processes (`workers`),
so that client CPU is told apart from everything else and a hung client can be ended. A load warms up unmeasured,
waits until all client processes and the parent are ready, and then runs its measured part, around which the broker's
usage is read (`session`). The runner (`runner`) lets the brokers take turns case by case, A B A B, so that a slow
spell of the machine meets both. Each measured part yields figures (`figures`), which are summed up over the rounds,
held against requirements and aims (`bounds`) and printed (`report`).
"""
