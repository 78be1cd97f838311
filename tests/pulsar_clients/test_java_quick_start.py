"""The example in Java of the quick start for Pulsar, compiled and run as printed, but for the broker's address."""

import subprocess
from pathlib import Path

import exacta
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pages.blocks import ROOT, blocks_of
from tests.pulsar.wire import Wire
from tests.pulsar_clients.java import jars

ADDRESS = "pulsar://127.0.0.1:6650"
SECONDS = 60
PROGRAM = """
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.PulsarClient;

public class Main {
    public static void main(String[] arguments) throws Exception {
%s
    }
}
"""


def next_id(wire: Wire, topic: str, subscription: str) -> int:
    """Return the entry that a subscription gets next; wait for it."""
    assert isinstance(wire.subscribe(topic, subscription), pb.CommandSuccess)
    wire.permit(1)
    message = wire.receive()
    assert isinstance(wire.close_consumer(), pb.CommandSuccess)
    found: int = message.message_id.entry_id
    return found


def test_an_order_becomes_an_invoice_once(tmp_path: Path) -> None:
    [block] = [each for each in blocks_of(ROOT / "docs/quick-start/pulsar.md") if each.language == "java"]
    with exacta.Broker(pulsar=True) as broker:
        assert ADDRESS in block.text
        source = tmp_path / "Main.java"
        source.write_text(PROGRAM % block.text.replace(ADDRESS, broker.pulsar_url))
        wire = Wire(broker.pulsar_url)
        wire.subscribe("orders", "billing")
        wire.close_consumer()
        wire.open_producer("orders")
        for number in range(2):
            assert isinstance(wire.produce(b"order %d" % number, sequence=number), pb.CommandSendReceipt)
        command = ["java", "-cp", f"{jars()}/*", str(source)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert ran.returncode == 0, ran.stderr[-2000:]
        assert next_id(wire, "invoices", "checker") == 0
        assert next_id(wire, "orders", "billing") == 1
        wire.close()
