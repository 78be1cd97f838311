"""Topics that are created because somebody asked for them."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from exacta.core.commands import CreateTopic
from exacta.core.rejections import Rejection
from exacta.front.broker import Broker
from exacta.front.request import Request
from exacta.ports.log import Answer


def create_missing(
    broker: Broker,
    request: Request,
    names: Iterable[str],
    done: Callable[[dict[str, Rejection]], None],
    made: Mapping[str, Callable[[bytes], CreateTopic]] = MappingProxyType({}),
) -> None:
    """Create the topics of these names that do not exist; `done` gets why others could not be created, by name.

    The front has checked that the names are legal in its protocol. A topic that somebody else has created meanwhile is
    there as well. `done` is called at once where nothing is missing. `made` has the topics that are not
    made like others: by name, the function that makes the command from a topic id.
    """
    missing = [
        made[name](broker.entropy.new_uuid().bytes)
        if name in made
        else CreateTopic(
            topic=name,
            topic_id=broker.entropy.new_uuid().bytes,
            partition_count=broker.configuration.num_partitions,
        )
        for name in names
        if broker.engine.visible(name, 0) is None
    ]
    if not missing:
        done({})
        return

    def created(answers: list[Answer]) -> None:
        done(
            {
                command.topic: answer
                for command, answer in zip(missing, answers, strict=True)
                if isinstance(answer, Rejection) and answer is not Rejection.TOPIC_ALREADY_EXISTS
            }
        )

    broker.submit(request, missing, created)
