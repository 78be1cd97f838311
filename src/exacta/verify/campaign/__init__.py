"""One run against a cluster: its topics, its clients and the faults, from an empty history to a full one.

`run.py` has the course of it, `roster.py` who takes part, `processes.py` the client processes, `faults.py` who is
killed and when, `cluster.py` what is asked of the cluster, `librdkafka.py` how the clients reach it.
"""
