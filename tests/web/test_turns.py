"""A little work in each turn of the loop."""

from exacta.web.turns import WorkLine
from tests.engine.rig import ManualLoop


def test_few_pieces_are_done_in_one_turn_in_their_order() -> None:
    loop, done = ManualLoop(), []
    turns = WorkLine(loop, most_a_turn=2)

    def adds(number: int) -> None:
        done.append(number)
        if number < 2:
            turns.take(lambda: done.append(number + 10))

    for number in range(4):
        turns.take(lambda number=number: adds(number))  # type: ignore[misc]
    seen = []
    while loop.ready:
        loop.turn()
        seen.append(list(done))
    assert seen == [[0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 10, 11]]


def test_the_line_begins_again_after_its_end() -> None:
    loop, done = ManualLoop(), []
    turns = WorkLine(loop)
    for number in range(2):
        turns.take(lambda number=number: done.append(number))  # type: ignore[misc]
        while loop.ready:
            loop.turn()
    assert done == [0, 1]
