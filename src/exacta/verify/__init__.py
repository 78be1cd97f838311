"""The exactly-once checker, for any Kafka-protocol cluster: workloads under faults, their history, its analysis.

- `history.py`, `history_file.py`: what was done and seen, one JSON object a line; the only thing the rooms share;
- `analysis/`: pure: a history in, anomalies out. `analysis/anomalies.py` defines every kind in one place;
- `workload/`: the processes that produce, transform and read, with librdkafka and, if asked for, Pulsar's client, each
  writing down what it does;
- `campaign/`: starts and kills these processes and the broker, watches offsets, reads everything at the end;
- `report/`: what is shown in the terminal, and the HTML page.

The checker knows no broker: it imports the client and the protocol of this project, and no other room.
"""
