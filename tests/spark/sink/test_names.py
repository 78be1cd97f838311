"""The names of a query on the cluster, and whose a transactional id is."""

from exacta.spark.sink.names import QueryNames


def test_an_attempt_is_known_by_its_whole_name():
    names = QueryNames("a")
    assert names.is_attempt("a-0-0")
    assert names.is_attempt("a-12-3", task=12)
    assert not names.is_attempt("a-12-3", task=1)
    assert not names.is_attempt("a-driver")


def test_a_query_whose_name_begins_with_another_name_is_not_taken_for_that_one():
    one, other = QueryNames("a"), QueryNames("a-1")
    theirs = [other.driver, other.attempt(0, 0), other.attempt(10, 2)]
    assert all(each.startswith(one.prefix) for each in theirs)
    assert not any(one.is_attempt(each) for each in theirs)
    assert not any(one.is_attempt(each, task=1) for each in theirs)
    assert not other.is_attempt(one.attempt(1, 0))


def test_the_groups_of_a_query():
    names, other = QueryNames("a"), QueryNames("a-1")
    decision = [names.decision_group(0), names.decision_group(12)]
    assert all(names.is_group(group) for group in (*decision, names.marker_group(3)))
    assert [group for group in (*decision, names.marker_group(3)) if names.is_decision_group(group)] == decision
    assert not any(names.is_group(group) for group in (other.decision_group(0), other.marker_group(0), "a-", "a-x"))


def test_further_sinks_of_a_query():
    names = QueryNames("a")
    assert names.sink_in("a.one-driver") == names.sink_in("a.one-manifest") == "a.one"
    assert names.sink_in("a.one-two-driver") == "a.one-two"
    assert [names.sink_in(each) for each in ("a-driver", "a.one-0", "ab.one-driver", "a.one-0-0")] == [None] * 4
