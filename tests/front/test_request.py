"""A request of any front: who asks, and where a bug ends."""

from exacta.ports.authorizer import Principal
from exacta.ports.log import FetchRequest
from tests.front.rig import Rig


def test_the_principal_is_the_connections() -> None:
    rig = Rig()
    assert str(rig.request.principal) == "User:ANONYMOUS"
    rig.connection.principal = Principal(name="alice")
    assert str(rig.request.principal) == "User:alice"
    assert (rig.request.client_host, rig.request.local_host) == ("/10.0.0.1", "10.0.0.2")


def test_an_exception_in_a_callback_is_a_failure_of_its_request() -> None:
    rig = Rig()

    def inverted(result: int) -> None:
        assert 1 // result

    rig.request.guard(inverted)(0)
    rig.request.guard(inverted)(1)
    assert rig.request.failures == 1


def test_hanging_up_refuses_what_the_client_sent() -> None:
    rig = Rig()
    rig.request.hang_up("no such topic")
    assert rig.connection.refused == ["no such topic"]


def test_a_fetch_is_bound_to_its_request_before_the_engine_answers() -> None:
    rig = Rig()
    wanted = FetchRequest(partitions=[], max_wait_ms=0, min_bytes=0, max_bytes=1, read_committed=True)
    answers: list[object] = []
    rig.broker.fetch(rig.request, wanted, answers.append)
    rig.loop.settle()
    assert rig.request.fetches == [wanted]
    assert answers == [[]]
