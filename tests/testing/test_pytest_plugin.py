"""The fixtures for pytest: what tests of a user get from them, in a pytest of their own."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

PLUGIN = "exacta.pytest_plugin"


def run(pytester: pytest.Pytester, tests: str, *arguments: str) -> pytest.RunResult:
    """Run these tests with the plugin and with no other one that is installed."""
    pytester.makepyfile(tests)
    return pytester.runpytest_subprocess("-p", PLUGIN, "-p", "no:cacheprovider", *arguments)


@pytest.fixture(autouse=True)
def no_other_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_nothing_of_the_broker_is_imported_before_a_fixture_is_used(pytester: pytest.Pytester) -> None:
    tests = """
        import sys

        def test_without() -> None:
            print([name for name in sys.modules if name.startswith("exacta.")])
    """
    run(pytester, tests, "-s").stdout.fnmatch_lines(["*['exacta.pytest_plugin']*", "*1 passed*"])


def test_it_is_loaded_in_no_time() -> None:
    """pytest loads it for everybody who has Exacta installed, whether they test with it or not."""
    program = f"""if True:
        import sys, pytest
        before = set(sys.modules)
        import {PLUGIN}
        print(*sorted(set(sys.modules) - before))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["exacta", PLUGIN]


def test_the_brokers_assertions_are_not_rewritten(pytester: pytest.Pytester) -> None:
    """pytest would for an installed Exacta, since it has a plugin; that takes longer than all the rest."""
    pytester.makeconftest("import pytest; pytest.register_assert_rewrite('exacta')")
    tests = """
        import sys

        def test_loader(exacta_broker):
            assert type(sys.modules["exacta.core.decide"].__spec__.loader).__name__ == "SourceFileLoader"
            assert type(sys.modules[__name__].__spec__.loader).__name__ == "AssertionRewritingHook"
    """
    run(pytester, tests).assert_outcomes(passed=1)


def test_one_broker_and_a_fresh_topic_for_each_test(pytester: pytest.Pytester) -> None:
    tests = """
        import pytest
        seen = set()

        @pytest.mark.parametrize("number", ["a/b", "c d"])
        def test_fresh(exacta_broker, exacta_topic, number):
            assert exacta_broker.records(exacta_topic) == []
            assert exacta_topic.startswith("test_fresh-")
            seen.add((exacta_broker, exacta_topic))

        @pytest.mark.exacta_topic(partitions=3, cleanup_policy="compact")
        def test_as_it_is_marked(exacta_broker, exacta_topic):
            with exacta_broker.client() as client:
                assert client.partitions([exacta_topic]) == {exacta_topic: 3}
            seen.add((exacta_broker, exacta_topic))

        def test_seen():
            assert len(seen) == 3 and len({broker for broker, _ in seen}) == 1
    """
    run(pytester, tests, "--strict-markers").assert_outcomes(passed=4)


def test_options_come_from_the_ini_file_and_from_markers(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nexacta_options =\n    num.partitions=2\n    group_initial_rebalance_delay_ms = 0\n")
    tests = """
        import pytest

        def count(broker):
            broker.create_topic("counted-" + str(id(object())))
            with broker.client() as client:
                [found] = set(client.partitions(client.topic_names()).values())
            return found

        def test_ini(exacta_broker):
            assert count(exacta_broker) == 2

        @pytest.mark.exacta_broker(num_partitions=5)
        class TestMarked:
            def test_class(self, exacta_broker):
                assert count(exacta_broker) == 5

            @pytest.mark.exacta_broker(num_partitions=7, host="0.0.0.0", allow_anonymous="PLAINTEXT")
            def test_nearest(self, exacta_broker):
                assert count(exacta_broker) == 7

            def test_class_again(self, exacta_broker):
                assert count(exacta_broker) == 5

        def test_factory(exacta_brokers):
            one, two = exacta_brokers(), exacta_brokers(config={"num.partitions": 3})
            assert (count(one), count(two)) == (2, 3)
            assert one.bootstrap_servers != two.bootstrap_servers
    """
    run(pytester, tests, "--strict-markers").assert_outcomes(passed=5)


def test_brokers_are_gone_with_their_scope(pytester: pytest.Pytester) -> None:
    tests = """
        made = []

        def test_made(exacta_brokers):
            made.append(exacta_brokers())

        def test_gone():
            assert not made[0].is_running
    """
    run(pytester, tests).assert_outcomes(passed=2)


def test_a_fault_that_was_never_met_fails_its_test_and_no_other(pytester: pytest.Pytester) -> None:
    tests = """
        def test_forgets(exacta_broker):
            exacta_broker.faults.drop_answer("EndTxn")

        def test_next(exacta_broker, exacta_brokers):
            assert exacta_broker.records
            exacta_brokers()

        def test_another_broker(exacta_broker, exacta_brokers):
            exacta_brokers().faults.full_disk()

        def test_fails_otherwise(exacta_broker):
            exacta_broker.faults.full_disk()
            assert not "otherwise"

        def test_last(exacta_broker, exacta_topic):
            assert exacta_broker.records(exacta_topic) == []
    """
    result = run(pytester, tests)
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(
        [
            "E *FaultNotMet: the fault drop_answer('EndTxn') was never met",
            "E *FaultNotMet: the fault full_disk() was never met",
            "E * AssertionError: assert not 'otherwise'",
        ]
    )


def test_the_next_test_finds_the_broker_running_and_its_time_passing(pytester: pytest.Pytester) -> None:
    tests = """
        def test_leaves_it(exacta_broker):
            exacta_broker.clock.freeze()
            exacta_broker.kill()

        def test_next(exacta_broker, exacta_topic):
            assert exacta_broker.is_running and not exacta_broker.clock.is_frozen
    """
    run(pytester, tests).assert_outcomes(passed=2)


def test_a_broker_that_does_not_start_fails_its_own_test_only(pytester: pytest.Pytester) -> None:
    tests = """
        import pytest

        @pytest.mark.exacta_broker(host="nowhere.invalid")
        def test_of_no_broker(exacta_broker):
            pass

        @pytest.mark.exacta_broker(num_partitions=2)
        def test_of_a_broker(exacta_broker):
            pass

        def test_several(exacta_brokers):
            one = exacta_brokers()
            with pytest.raises(Exception, match="address already in use"):
                exacta_brokers(port=int(one.bootstrap_servers.partition(":")[2]))

        def test_without():
            pass
    """
    result = run(pytester, tests)
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*nowhere.invalid*"])


def test_a_fixture_that_fails_leaves_nothing_to_the_next_test(pytester: pytest.Pytester) -> None:
    tests = """
        import pytest

        @pytest.fixture
        def broken(exacta_broker):
            exacta_broker.clock.freeze()
            exacta_broker.faults.drop_answer("Produce")
            raise RuntimeError

        def test_broken(broken):
            pass

        @pytest.fixture
        def late(exacta_broker):
            yield
            exacta_broker.faults.drop_answer("EndTxn")

        def test_late(exacta_broker, late):
            assert not exacta_broker.clock.is_frozen

        def test_next(exacta_broker):
            exacta_broker.faults.check()
    """
    result = run(pytester, tests)
    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(["E *FaultNotMet: the fault drop_answer('EndTxn') was never met"])


@pytest.mark.parametrize(
    ("ini", "marker", "complaint"),
    [
        ("num.partitions", "exacta_broker()", "*exacta_options in *: 'num.partitions' is not NAME=VALUE*"),
        ("num.partitions=1", "exacta_broker(3)", "*the marker exacta_broker takes options by name only*"),
        ("num.partitions=1", "exacta_broker(num_partition=3)", "*did you mean num.partitions*"),
    ],
)
def test_wrong_options_are_told(pytester: pytest.Pytester, ini: str, marker: str, complaint: str) -> None:
    pytester.makeini(f"[pytest]\nexacta_options = {ini}\n")
    tests = f"""
        import pytest

        @pytest.mark.{marker}
        def test_marked(exacta_broker):
            pass
    """
    result = run(pytester, tests)
    assert result.ret != 0
    result.stdout.fnmatch_lines([complaint])


def test_topics_for_fixtures_of_any_scope(pytester: pytest.Pytester) -> None:
    tests = """
        import pytest

        @pytest.fixture(scope="module")
        def orders(exacta_topics):
            return exacta_topics(3, cleanup_policy="compact")

        @pytest.mark.parametrize("number", [1, 2])
        def test_partitions(exacta_broker, exacta_topics, orders, number):
            other = exacta_topics()
            assert other != orders
            with exacta_broker.client() as client:
                assert client.partitions([orders, other]) == {orders: 3, other: 1}
    """
    run(pytester, tests).assert_outcomes(passed=2)
