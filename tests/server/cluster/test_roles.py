"""The roles of a broker of a cluster: each cell of both tables, and that every broker comes to an end."""

import pytest

from exacta.server.cluster.roles import BrokerRole, Happened, next_role, serves_clients
from tests.docstring_tables import docstring_table

NEXT = docstring_table("exacta.server.cluster.roles", "role")
SERVED = docstring_table("exacta.server.cluster.roles", "clients")


def test_the_tables_have_every_role_and_everything_that_can_happen() -> None:
    assert [*NEXT.rows] == [*SERVED.rows] == [each.value for each in BrokerRole]
    assert [*NEXT.columns] == [each.value for each in Happened]


@pytest.mark.parametrize(("role", "happened", "then"), NEXT.cells())
def test_each_role_is_followed_by_what_the_table_says(role: str, happened: str, then: str) -> None:
    expected = role if then == "-" else then
    assert next_role(BrokerRole(role), Happened(happened)) is BrokerRole(expected)


@pytest.mark.parametrize(("role", "touch", "said"), SERVED.cells())
def test_clients_are_served_where_the_table_says(role: str, touch: str, said: str) -> None:
    assert serves_clients(BrokerRole(role), in_touch=touch == "in touch") is (said == "yes")


def test_only_a_broker_that_follows_takes_the_lead_and_nobody_leads_again_without_reading_the_log() -> None:
    def before(role: BrokerRole) -> set[BrokerRole]:
        return {each for each in BrokerRole for happened in Happened if next_role(each, happened) is role} - {role}

    assert before(BrokerRole.LEADING) == {BrokerRole.FOLLOWING}
    assert before(BrokerRole.FOLLOWING) == {BrokerRole.BEGINNING}


@pytest.mark.parametrize("role", BrokerRole)
def test_a_stop_ends_every_role_whatever_else_happens(role: BrokerRole) -> None:
    stopped = next_role(role, Happened.STOP)
    assert stopped in (BrokerRole.STOPPING, BrokerRole.ENDED)
    for happened in Happened:
        assert next_role(stopped, happened) in (BrokerRole.STOPPING, BrokerRole.ENDED)
    assert next_role(stopped, Happened.FAILED) is BrokerRole.ENDED
