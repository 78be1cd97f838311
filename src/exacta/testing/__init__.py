"""The test kit: a real broker inside the test process, what to assert on it, its time, and its faults.

    with exacta.Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

`broker.py` owns the broker's life, `questions.py` what a test asks it, and `clock.py` its time.
"""

from exacta.testing.broker import Broker
from exacta.testing.questions import Fate, NotRead, Record

__all__ = ["Broker", "Fate", "NotRead", "Record"]
