"""The test kit: a real broker inside the test process, what to assert on it, its time, and its faults.

    with exacta.Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

`broker.py` owns the broker's life, `questions.py` what a test asks it, `clock.py` its time, and `fault_commands.py` the
faults that a test asks for.
"""

from exacta.testing.broker import Broker
from exacta.testing.faults import Fault, FaultNotMet
from exacta.testing.proxy import Proxy
from exacta.testing.questions import Fate, NotRead, Record

__all__ = ["Broker", "Fate", "Fault", "FaultNotMet", "NotRead", "Proxy", "Record"]
