"""Planted bugs of what is let into the log."""

from exacta.protocol.kafka.records import LOG_MAGICS, BatchHeader, parse_batch_header, validate_batch
from exacta.protocol.kafka.schema import Buffer
from exacta.records import admission
from simulation.canaries import Replacements, canary
from simulation.clients.forging import FORGED_BODY


@canary("a body forged by a client: its batch is stored, as if the broker had written it", shows=r"^bodies: ")
def body_forged() -> Replacements:
    def lenient(records: Buffer) -> BatchHeader:
        header = parse_batch_header(records, magics={*LOG_MAGICS, FORGED_BODY})
        return header if header.magic == FORGED_BODY else validate_batch(records)

    return [(admission, "validate_batch", lenient)]


@canary("the highest time of a batch is what its client says: look-ups and retention go wrong", shows=r"^times: ")
def highest_time_believed() -> Replacements:
    def believed(rules: object, plain: object, header: BatchHeader, now_ms: int) -> int:
        return header.max_timestamp

    return [(admission.BatchRules, "_highest_time", believed)]
