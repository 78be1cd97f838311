"""Fixtures for pytest: a broker, topics, several brokers at once (docs/how-to/testing.md).

pytest loads this module in every environment that has Exacta installed, so it imports nothing of the broker until a
test asks for one of the fixtures.

Theory of operation. There is one broker for the whole session, with the options of the ini file. A test that is marked
with other options gets a broker with those: the marker becomes a parameter of the fixture, by which pytest keeps tests
of like parameters together, and there is one such broker at a time. A test fails if a fault that it asked for was never
met. What it left of faults, and of a clock that stands still, is taken back from the session's broker. The same goes
for what its fixtures leave, also where one of them fails before the test. If the broker was left stopped, the next test
starts it again. Hooks know the brokers that have started and have not ended: one whose start fails is no other test's.
"""

import itertools
import re
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from exacta.testing import Broker

BROKER = "exacta_broker"
TOPIC = "exacta_topic"
OPTIONS = "exacta_options"

MARKERS = (
    f"{BROKER}(**options): the test gets a broker with these options, by Kafka's names with underscores",
    f"{TOPIC}(partitions=None, **configs): the topic of `{TOPIC}` has these partitions and configurations",
)
_BROKERS = pytest.StashKey["list[Broker]"]()
_PARAMETERS = pytest.StashKey[dict[str, dict[str, Any]]]()
_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the options of all brokers from the ini file."""
    parser.addini(OPTIONS, "Options of Exacta's brokers in tests: lines of NAME=VALUE, by Kafka's names.", "linelist")


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known."""
    config.stash[_BROKERS] = []
    config.stash[_PARAMETERS] = {}
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let a marker's options become the parameter of the broker."""
    marked = [*metafunc.definition.iter_markers(BROKER)]
    if BROKER not in metafunc.fixturenames or not marked:
        return
    options: dict[str, Any] = {}
    for marker in reversed(marked):  # what stands nearest to the test counts
        if marker.args:
            raise pytest.UsageError(f"{metafunc.definition.nodeid}: the marker {BROKER} takes options by name only")
        options.update(marker.kwargs)
    name = ",".join(f"{key}={options[key]}" for key in sorted(options))
    # pytest tells a parameter by its identity.
    same = metafunc.config.stash[_PARAMETERS].setdefault(repr(sorted(options.items())), options)
    metafunc.parametrize(BROKER, [same], indirect=True, scope="session", ids=[name])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test whose fault was never met; leave no fault to the next one, and no clock that stands still."""
    __tracebackhide__ = True
    return (yield from _judged(item.config))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start the session's broker again, if a test has left it stopped."""
    for broker in item.config.stash[_BROKERS]:
        if not broker.is_running:
            broker.restart(clean=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Do for the end of a test's fixtures what is done for the test, and for a setup that has failed or skipped."""
    __tracebackhide__ = True
    _take_back(item.config)
    return (yield from _judged(item.config))


def _judged(config: pytest.Config) -> Generator[None, Any, Any]:
    """Fail if a fault was never met in what runs meanwhile, and take back what it leaves."""
    __tracebackhide__ = True
    try:
        result = yield
        for broker in config.stash[_BROKERS]:
            broker.faults.check()
    finally:
        _take_back(config)
    return result


def _take_back(config: pytest.Config) -> None:
    for broker in config.stash[_BROKERS]:
        broker.faults.clear()
        if broker.clock.is_frozen:
            broker.clock.resume()


@pytest.fixture(scope="session")
def exacta_broker(request: pytest.FixtureRequest) -> "Iterator[Broker]":
    """A broker for all tests, with the options of the ini file and of the marker `exacta_broker`."""
    with _started(request.config, (), getattr(request, "param", {})) as broker:
        yield broker


@pytest.fixture(scope="session")
def exacta_topics(exacta_broker: "Broker") -> "Callable[..., str]":
    """Make a topic with each call, of `Broker.create_topic`'s arguments but the name; fixtures of any scope may ask."""

    def make(partitions: int | None = None, **configs: object) -> str:
        topic = f"topic-{next(_numbers)}"
        exacta_broker.create_topic(topic, partitions, **configs)
        return topic

    return make


@pytest.fixture
def exacta_topic(request: pytest.FixtureRequest, exacta_broker: "Broker") -> str:
    """The name of a topic that was made for this test, as the marker `exacta_topic` wants it."""
    marker = request.node.get_closest_marker(TOPIC)
    name = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)[:200].strip("-")
    topic = f"{name}-{next(_numbers)}"
    exacta_broker.create_topic(topic, *(marker.args if marker else ()), **(marker.kwargs if marker else {}))
    return topic


@pytest.fixture
def exacta_brokers(request: pytest.FixtureRequest) -> "Iterator[Callable[..., Broker]]":
    """Make a broker with each call, of `exacta.Broker`'s arguments; all end with the test."""
    with ExitStack() as made:

        def make(*arguments: Any, **options: Any) -> "Broker":
            return made.enter_context(_started(request.config, arguments, options))

        yield make


@contextmanager
def _started(config: pytest.Config, arguments: Sequence[Any], options: dict[str, Any]) -> "Iterator[Broker]":
    """Run a broker, with the ini file's options where these do not say otherwise. The tests' ends know it meanwhile."""
    with _assertions_kept(config):
        from exacta.testing import Broker

    given = {**options, "config": {**_of_ini(config), **options.get("config", {})}}
    with Broker(*arguments, **given) as broker:
        config.stash[_BROKERS].append(broker)
        try:
            yield broker
        finally:
            config.stash[_BROKERS].remove(broker)


@contextmanager
def _assertions_kept(config: pytest.Config) -> Iterator[None]:
    """Let what is imported meanwhile keep its assertions as they are written.

    pytest rewrites those of all modules of a package that has a plugin. Where no bytecode may be written it compiles
    them again each time, and the broker's import took 1.1 s instead of 0.2 s.
    """
    before = [*sys.meta_path]
    rewriting: object = config.pluginmanager.rewrite_hook
    sys.meta_path[:] = [each for each in before if each is not rewriting]
    try:
        yield
    finally:
        sys.meta_path[:] = before


def _of_ini(config: pytest.Config) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in config.getini(OPTIONS):
        name, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"{OPTIONS} in {config.inipath}: {line!r} is not NAME=VALUE")
        found[name.strip()] = value.strip()
    return found
