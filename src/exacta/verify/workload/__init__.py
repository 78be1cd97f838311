"""The clients: each a process of its own, with librdkafka, told what to do on standard input, and writing down what it
does on standard output, one operation a line.

`plan.py` draws what a transaction shall do; `producing.py`, `transforming.py` and `reading.py` do it; `process.py` is
the program; `spec.py` what it is told. `pulsar/` has Pulsar's clients. A process writes down what it is about to do
before it does it, because it may be killed at any point.
"""
