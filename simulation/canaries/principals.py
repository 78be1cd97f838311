"""Planted bugs of principals."""

from typing import Any

from exacta.core.apply import _APPLY
from exacta.core.events import ProducerBound
from exacta.core.ids import NO_PRINCIPAL
from exacta.ports.authorizer import Principal
from simulation.canaries import Replacements, canary


@canary("a fence takes a transactional id from the principal that it belongs to", shows=r"principals: ")
def fence_takes_the_principal() -> Replacements:
    bound = _APPLY[ProducerBound]

    def with_its_own(state: Any, event: ProducerBound) -> None:
        bound(state, event)
        state.transactional_ids[event.transactional_id].principal = event.principal

    return [(_APPLY, ProducerBound, with_its_own)]


@canary("a front forgets on whose behalf a client asks", shows=r"principals: ")
def nobody_has_asked() -> Replacements:
    return [(Principal, "durable_name", property(lambda self: NO_PRINCIPAL))]
