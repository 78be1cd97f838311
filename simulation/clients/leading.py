"""Programs that each want a partition for themselves: of two that have had it, the older one must be told so.

They know what each of them was told. An epoch that one was given may be given to nobody afterwards, and a node that
comes back with a lower one than somebody else was told before is refused.
"""

from exacta.core.commands import TakePartition
from exacta.core.rejections import Rejection
from exacta.core.replies import PartitionTaken
from simulation.clients.connection import Disconnected
from simulation.clients.surroundings import Surroundings


async def lead(here: Surroundings) -> bool:
    """Take a partition now and then, for the first time or as who has had it, until the world is over."""
    place, told = here.chance.choice(here.places), here.history.topic_epochs
    mine: int | None = None
    while not here.is_over():
        await here.think(0.7)
        presented = mine if here.chance.random() < 0.7 else None
        before = told.get(place, -1)
        try:
            answer = await here.calls.ask(TakePartition(topic=place[0], partition=place[1], topic_epoch=presented))
        except Disconnected:
            continue  # nobody knows what became of it
        if isinstance(answer, PartitionTaken):
            mine = answer.topic_epoch
            told[place] = max(mine, told.get(place, -1))
            if presented is None and mine <= before:
                here.history.refusals.append(f"epochs: {here.writer} is given {mine} of {place}, after {before}")
            elif presented is not None and mine < before:
                here.history.refusals.append(f"epochs: {here.writer} goes on with {mine} of {place}, after {before}")
        elif answer is Rejection.PRODUCER_FENCED and presented is not None:
            mine = None
        else:
            here.history.refusals.append(f"refused: {here.writer} takes {place}: {answer}")
    return False
