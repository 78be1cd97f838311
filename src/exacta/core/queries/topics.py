"""The shape of topics: their ids and partitions, by name and by id, one by one and in pages."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from exacta.core.state.state import State


class TopicShape(Struct, frozen=True, gc=False):
    """A topic as it is in one step."""

    name: str
    topic_id: bytes
    partition_count: int


class PagedTopic(Struct, frozen=True):
    """A topic on a page, and which of its partitions are on it."""

    name: str
    shape: TopicShape | None
    """None: there is no topic of this name."""
    first: int = 0
    end: int = 0


class TopicPage(Struct, frozen=True):
    """Topics in the order of their names; `following` is the place of the next page (None: this is the last one)."""

    topics: Sequence[PagedTopic]
    following: tuple[str, int] | None = None


def sorted_topic_names(state: State, now_ms: int) -> list[str]:
    """Return the names of all topics in their order."""
    return sorted(state.topics)


def topic_shape(state: State, now_ms: int, name: str) -> TopicShape | None:
    """Return the shape of a topic; None if there is none of this name."""
    topic = state.topics.get(name)
    return None if topic is None else TopicShape(topic.topic, topic.topic_id, topic.partition_count)


def topic_shapes(state: State, now_ms: int, wanted: Iterable[tuple[str, bytes | None]]) -> list[TopicShape | None]:
    """Return the shape of each topic that is named by its id or, where that is None, by its name; None: not there."""
    topics, names = state.topics, state.volatile.topic_names
    return [
        None
        if (topic := topics.get(name if topic_id is None else names.get(topic_id, ""))) is None
        else TopicShape(topic.topic, topic.topic_id, topic.partition_count)
        for name, topic_id in wanted
    ]


def topic_page(state: State, now_ms: int, names: Iterable[str], begin: tuple[str, int], limit: int) -> TopicPage:
    """Return the page of these topics, in their order, that begins at a topic and partition.

    It has at most `limit` partitions. Topics that are not there take no room in it.
    """
    page: list[PagedTopic] = []
    room = limit
    for name in names:
        if name < begin[0]:
            continue
        if room == 0:
            return TopicPage(page, (name, 0))
        shape = topic_shape(state, now_ms, name)
        if shape is None:
            page.append(PagedTopic(name, None))
            continue
        first = begin[1] if name == begin[0] else 0
        end = min(first + room, shape.partition_count)
        page.append(PagedTopic(name, shape, first, end))
        if end < shape.partition_count:
            return TopicPage(page, (name, end))
        room -= max(end - first, 0)
    return TopicPage(page)
