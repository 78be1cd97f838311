"""One run against a cluster: its topics, its clients and the faults, from an empty history to a full one.

`run.py` has the course of a run, `roster.py` the participants, `processes.py` the client processes, `faults.py` the
choice of victims and moments, `cluster.py` the calls to the cluster, `librdkafka.py` the way in which the clients reach
it.
"""
