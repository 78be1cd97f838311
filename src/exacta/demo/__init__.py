"""The parts of `exacta demo`: a Spark pipeline on Exacta under kill -9, and a judge that counts what came out of it.

In the order of the story: `flights` and `records` (the input), `topics` (loading and reading it, by confluent-kafka),
`pipeline` and `plain_sink` (PySpark, in a process of its own), `processes`, `kills` and `nemesis` (what is killed,
when, and by whom), `checkpoints` (how far the pipeline has come), `expectation` (the same computation in pandas),
`raw_log` and `verify` (the judge), `run` and `screen` (all of it together, and what is shown).
"""
