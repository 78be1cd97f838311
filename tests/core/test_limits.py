"""Bounds against misuse, each at its border; what was there before goes on."""

from msgspec.structs import replace

from exacta.core.commands import (
    Acknowledge,
    CommitOffsets,
    CreateTopic,
    DeleteTopic,
    InitProducerId,
    JoinGroup,
    OffsetToCommit,
    Subscribe,
)
from exacta.core.commands.subscriptions import EARLIEST
from exacta.core.ids import Offset, Ticket
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, Done, ProducerBoundReply, Reply, Subscribed
from exacta.core.values.subscriptions import SubscriptionType
from tests.core.world import SMALL, Handle, World

PROTECTED_MS = SMALL.producer_protected_ms


def world(**limits: int) -> World:
    made = World(replace(SMALL, **limits))
    made.topic()
    return made


class TestTransactionalIds:
    def test_a_further_one_is_refused_and_an_old_one_bound_again(self) -> None:
        here = world(max_transactional_ids=2)
        first, _ = here.producer("a"), here.producer("b")
        third = InitProducerId(transactional_id="c", transaction_timeout_ms=1000)
        assert here.send(third) is Rejection.LIMIT_REACHED
        assert isinstance(first.init_again(), ProducerBoundReply)
        here.check()


class TestParticipantsOfHandles:
    """Partitions, groups and subscriptions of transactions without a transactional id."""

    @staticmethod
    def acknowledge(here: World, handle: Handle, offset: int) -> object:
        return here.send(
            Acknowledge(
                topic="t",
                partition=0,
                subscription="s",
                runs=((Offset(offset), Offset(offset)),),
                transaction=handle.transaction_id,
            )
        )

    def test_a_further_one_of_a_handle_is_refused_and_the_others_go_on(self) -> None:
        here = world(max_participants_per_handle=2)
        here.producer(None).append(count=2)
        subscribe = Subscribe(
            topic="t", partition=0, subscription="s", subscription_type=SubscriptionType.SHARED, begin=EARLIEST
        )
        assert isinstance(here.send(subscribe), Subscribed)
        handle = here.handle()
        assert self.acknowledge(here, handle, 0) == DONE
        assert handle.commit_offsets(1, group_id="g") == DONE
        assert handle.append(partition=1) is Rejection.LIMIT_REACHED
        assert handle.commit_offsets(1, group_id="h") is Rejection.LIMIT_REACHED
        assert (self.acknowledge(here, handle, 1), handle.commit_offsets(2, group_id="g")) == (DONE, DONE)
        other = here.handle()
        assert isinstance(other.append(partition=0), Appended)
        assert isinstance(other.append(partition=1), Appended)
        assert self.acknowledge(here, other, 1) is Rejection.TRANSACTION_CONFLICT
        assert (handle.end(commit=True), other.end(commit=False)) == (DONE, DONE)
        here.check()

    def test_a_further_one_of_all_is_refused_until_a_handle_ends_or_a_topic_goes(self) -> None:
        here = world(max_participants_of_handles=2)
        first, second = here.handle(), here.handle()
        assert isinstance(first.append(partition=0), Appended)
        assert second.commit_offsets(1) == DONE
        assert second.append(partition=0) is Rejection.LIMIT_REACHED
        assert isinstance(first.append(partition=0), Appended)
        here.check()
        first.end(commit=True)
        assert isinstance(second.append(partition=0), Appended)
        here.crash()
        assert second.append(partition=1) is Rejection.LIMIT_REACHED
        here.send(DeleteTopic(topic="t"))
        here.check()
        here.topic()
        assert isinstance(second.append(partition=1), Appended)
        here.check()


class TestProducersOfAPartition:
    def test_the_one_silent_longest_makes_room(self) -> None:
        here = world(max_producers_per_partition=2)
        producers = [here.producer(None) for _ in range(3)]
        for producer in (*producers[:2], producers[0]):
            assert isinstance(producer.append(), Appended)
        here.pass_time(PROTECTED_MS)
        assert isinstance(producers[0].append(), Appended)
        assert isinstance(producers[2].append(), Appended)
        partition = here.state.partition("t", 0)
        assert partition is not None
        assert list(partition.producers) == [producers[0].producer_id, producers[2].producer_id]
        assert isinstance(producers[0].append(), Appended), "whose state is there goes on"
        here.check()

    def test_never_one_that_may_repeat_its_batch(self) -> None:
        """Or a stranger with many ids makes others write twice."""
        here = world(max_producers_per_partition=1)
        first, other = here.producer(None), here.producer(None)
        first.append()
        here.pass_time(PROTECTED_MS - 1)
        assert other.append() is Rejection.LIMIT_REACHED
        assert first.append(sequence=0) == Appended(base_offset=Offset(0), repeated=True, max_timestamp_ms=1_000_000)
        here.pass_time(1)
        assert isinstance(other.append(), Appended)
        here.check()

    def test_never_one_with_an_open_transaction(self) -> None:
        here = world(max_producers_per_partition=1)
        open_one = here.producer("a")
        open_one.add()
        open_one.append()
        other = here.producer(None)
        assert other.append() is Rejection.LIMIT_REACHED
        assert isinstance(open_one.append(), Appended)
        assert isinstance(open_one.end(commit=True), Reply)
        here.pass_time(PROTECTED_MS)
        assert isinstance(other.append(), Appended)
        here.check()


class TestGroups:
    def commit(self, here: World, group_id: str) -> object:
        offset = OffsetToCommit(topic="t", partition=0, offset=0)
        return here.send(CommitOffsets(group_id=group_id, offsets=(offset,)))

    def join(self, here: World, group_id: str) -> object:
        return here.send(
            JoinGroup(
                ticket=Ticket(1),
                group_id=group_id,
                member_id="",
                new_member_id="m",
                client_id="c",
                client_host="h",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=(("range", b""),),
                knows_member_id_required=True,
            )
        )

    def test_a_further_one_is_refused_by_commit_and_by_join(self) -> None:
        here = world(max_groups=2)
        assert isinstance(self.commit(here, "a"), Done)
        assert self.join(here, "b") is not Rejection.LIMIT_REACHED
        assert isinstance(self.commit(here, "c"), Done)
        for group_id in ("d", "e"):
            assert self.commit(here, group_id) is Rejection.LIMIT_REACHED
            assert self.join(here, group_id) is Rejection.LIMIT_REACHED
        assert isinstance(self.commit(here, "a"), Done)
        here.check()

    def test_a_transaction_begins_no_further_one_either(self) -> None:
        here = world(max_groups=1)
        self.commit(here, "a")
        producer = here.producer("x")
        producer.add_group("b")
        assert producer.commit_offsets(0, group_id="b") is Rejection.LIMIT_REACHED
        here.check()


class TestPartitions:
    def test_no_more_than_there_may_be(self) -> None:
        here = world(max_partitions=5)  # two are there

        def create(count: int) -> object:
            return here.send(CreateTopic(topic="u", topic_id=b"u" * 16, partition_count=count))

        assert create(4) is Rejection.INVALID_PARTITIONS
        assert create(3) is not Rejection.INVALID_PARTITIONS
