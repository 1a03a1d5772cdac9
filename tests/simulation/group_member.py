"""A process with a consumer in it: the real parts of the client, without threads and sockets.

The heartbeat thread and the user's thread run in turns, when a message has arrived for them or their timeout is over.
Both pause while the process is paused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from ottla.client.consumer.assignors.choice import choose_assignors
from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.coordinator.generation import Generation
from ottla.client.consumer.group.consumer_coordinator import ConsumerCoordinator
from ottla.client.consumer.group.heartbeat_thread import HeartbeatThread
from ottla.client.consumer.group.membership.classic_membership import ClassicMembership
from ottla.client.consumer.group.membership.member_state import ClassicMemberState
from ottla.client.consumer.group.membership.membership import Membership
from ottla.client.consumer.group.membership.standing import Standing
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.metadata.metadata import Metadata
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.runtime.deadline import ClosingDeadline
from ottla.coordination.groups.events import TransactionalOffsetsCommitted
from ottla.errors import CommitFailedError, ErrorCode, KafkaError, OttlaError, RebalanceInProgressError
from ottla.model import EARLIEST, OffsetAndMetadata, TopicPartition
from ottla.settings_class import changed
from ottla.trace import EventStream
from tests.simulation.group_broker import GROUP
from tests.simulation.network import BROKER, Connection, SimulatedClient

CONFIG = ConsumerConfig(
    bootstrap_servers=("broker:9092",),
    group_id=GROUP,
    session_timeout_ms=10_000,
    heartbeat_interval_ms=3_000,
    max_poll_interval_ms=15_000,
    request_timeout_ms=5_000,
    auto_commit_interval_ms=4_000,
    auto_offset_reset="earliest",
)
LOST = (CommitFailedError, RebalanceInProgressError)
TAKEN = (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID)


OUTSIDE = (ClassicMemberState.UNJOINED, ClassicMemberState.PREPARING_REBALANCE)
"""States in which the coordinator waits for a member in any case."""


class SteppedThread(HeartbeatThread):
    """The heartbeat thread, run in turns by the simulation."""

    def __init__(self, name: str, membership: Membership, *rest: Any) -> None:
        super().__init__(name, membership, *rest)
        self.membership = membership

    def start(self) -> None:
        pass

    def is_alive(self) -> bool:
        return not self.ended

    def join(self) -> None:
        pass

    def _handle_error(self, error: Exception) -> None:
        if not isinstance(error, OttlaError):
            raise error
        super()._handle_error(error)


class GroupMember:
    """One consumer and its user."""

    def __init__(
        self,
        group: Any,
        name: str,
        topics: frozenset[str],
        strategy: tuple[str, ...],
        instance: str | None,
        style: str,
        protocol: str = "classic",
        *,
        by_pattern: bool = False,
    ) -> None:
        self.group = group
        self.world = group.world
        self.name = name
        self.topics = topics
        self.instance = instance
        self.by_pattern = by_pattern
        """True if the broker resolves its topics."""
        self.style = style
        """The style of commits: auto, manual, none, or transactional."""
        self.alive = True
        self.fenced = False
        self.closed = False
        self.frozen_until = 0.0
        self.busy_until = 0.0
        self.polled = self.world.now
        self.believes: tuple[Generation, frozenset[TopicPartition]] | None = None
        """In which generation it has which partitions, where it thinks to be in good standing."""
        self.torn: Generation | None = None
        """A place that the broker has forgotten against all promises."""
        self.thread: SteppedThread | None = None
        self._turns = {"user": 0, "thread": 0}
        self._due = {"user": 0.0, "thread": 0.0}
        self._epoch = 0
        self._in_transaction = False
        self._build(
            changed(
                CONFIG,
                group_protocol=protocol,
                group_instance_id=instance,
                partition_assignment_strategy=strategy,
                enable_auto_commit=style == "auto",
                isolation_level="read_committed" if style == "transactional" else "read_uncommitted",
            )
        )

    def _build(self, config: ConsumerConfig) -> None:
        world = self.world
        backoff = ExponentialBackoff(100, 1000, world.chance)
        self.metadata = Metadata([BROKER], max_age_ms=300_000, backoff=backoff)
        self.user_client = self._client("user")
        self.subscriptions = SubscriptionState(EARLIEST, in_group=True)
        self.coordinator = ConsumerCoordinator(
            config,
            self.name,
            self.user_client,  # type: ignore[arg-type]
            self.subscriptions,
            choose_assignors(config.partition_assignment_strategy),
            backoff,
            lambda: self._client("thread"),  # type: ignore[arg-type,return-value]
            EventStream(world),
            self._make_thread,
            lambda: f"m{world.chance.randrange(10**6)}",
        )
        if self.by_pattern:  # the names are requested if there are ids without names
            world.after(world.chance.random() * 5, self.see_topics)
        else:
            self.see_topics()
        self._subscribe()

    @property
    def membership(self) -> Membership | None:
        return self.thread.membership if self.thread is not None else None

    @property
    def is_in_good_standing(self) -> bool:
        """True if it considers itself allowed to read and commit."""
        return self.membership is not None and self.membership.standing is Standing.GOOD

    @property
    def is_member(self) -> bool:
        """True if it must have an assignment in the end."""
        return self.alive and not self.closed and not self.fenced and self.subscriptions.is_group_managed

    def see_topics(self) -> None:
        """The metadata is renewed."""
        self.world.say(self.name, "renews its metadata")
        self.metadata.adopt_cluster(self.group.cluster, self.world.now)
        self.wake("user")

    def wake(self, who: str, span: float = 0.0) -> None:
        """Schedule a turn of a thread after so many seconds, unless an earlier one is scheduled."""
        due = self.world.now + span
        if due < self._due[who] or self._due[who] < self.world.now or not self._turns[who]:
            self._turns[who] += 1
            self._due[who] = due
            turn = self._turns[who]
            self.world.at(due, lambda: self._take_turn(who, turn))

    # What befalls it.

    def crash(self) -> None:
        """The member is killed without a request to leave."""
        self.world.say(self.name, "is killed")
        self.alive = False
        self.see_what_it_believes()
        for client in (self.user_client, getattr(self, "thread_client", None)):
            if client is not None:
                client.close()

    def freeze(self, span: float) -> None:
        """Pause the whole process."""
        self.world.say(self.name, f"stands still for {span:.3f}")
        self.frozen_until = self.world.now + span

    def be_busy(self, span: float) -> None:
        """The user does not poll."""
        self.world.say(self.name, f"is busy for {span:.3f}")
        self.busy_until = self.world.now + span

    def close(self) -> None:
        """The user closes the consumer, without patience."""
        if not self.alive or self.closed:
            return
        self.world.say(self.name, "closes")
        self.closed = True
        finish(self.coordinator.close(ClosingDeadline(self.world.now)))
        self.see_what_it_believes()

    def unsubscribe(self) -> None:
        """The user wants nothing for now."""
        if self.alive and not self.closed and self.subscriptions.is_group_managed:
            self.world.say(self.name, "unsubscribes")
            finish(self.coordinator.leave(until=self.world.now))
            self.subscriptions.unsubscribe()
            self.see_what_it_believes()

    def subscribe(self, topics: frozenset[str]) -> None:
        """The user wants these topics from now on."""
        if self.alive and not self.closed:
            self.world.say(self.name, f"subscribes to {sorted(topics)}")
            self.topics = topics
            self._subscribe()

    def _subscribe(self) -> None:
        if self.by_pattern:
            self.subscriptions.subscribe_broker_pattern("|".join(sorted(self.topics)))
        else:
            self.subscriptions.subscribe(self.topics)
        self.coordinator.handle_subscription_change()
        self.wake("user")

    def rewind(self) -> None:
        """The user reads something again."""
        for tp in self.subscriptions.assigned():
            position = self.subscriptions.state(tp).position
            if position:
                back = self.world.chance.randrange(position)
                self.world.say(self.name, f"goes back to {back} in {tp}")
                self.subscriptions.seek(tp, back)
                rewound = self.group.broker.rewound
                rewound[tp] = min(back, rewound.get(tp, back))
                return

    def rejoin(self) -> None:
        """The user has the group rebalance."""
        if self.alive and not self.closed and self.subscriptions.is_group_managed:
            self.coordinator.request_rejoin("rebalance enforced by user")

    # Its threads.

    def _take_turn(self, who: str, turn: int) -> None:
        if turn != self._turns[who] or not self.alive:
            return
        now = self.world.now
        until = max(self.frozen_until, self.busy_until if who == "user" else 0.0)
        if now < until:
            self._due[who] = -1.0
            self.wake(who, until - now)
            return
        self._due[who] = -1.0
        if who == "thread":
            self._turn_of_thread()
        elif not self.closed:
            self._turn_of_user()
        self.see_what_it_believes()

    def _turn_of_thread(self) -> None:
        thread, client = self.thread, self.thread_client
        assert thread is not None
        client.fire()
        while client.asleep is None and thread.run_once():
            pass
        thread.membership.check()
        silent = self.world.now - self.polled > CONFIG.max_poll_interval_ms / 1000 + 0.1
        assert not silent or is_outside(thread.membership), f"{self.name} stays, and its user does not poll"
        if client.asleep is None:
            thread.ended = True
        else:
            self.wake("thread", client.asleep)

    def _turn_of_user(self) -> None:
        now = self.polled = self.world.now
        self.user_client.fire()
        span = 3.0
        try:
            self.coordinator.poll(now)
            span = min(span, self.coordinator.wait_span(now), self.coordinator.committed.refresh())
        except KafkaError as error:
            self._hear(error)
        self._check_that_lost_is_lost()
        for tp, timestamp in self.subscriptions.find_reset_timestamps(now).items():
            self.subscriptions.reset(tp, timestamp, 0)
        if not self.fenced:
            self._consume(now)
            self.wake("user", min(span, self.subscriptions.next_retry(now)) + 0.001)

    def _check_that_lost_is_lost(self) -> None:
        """Check that a member without membership has no partitions; automatic commits may still be in flight."""
        membership = self.membership
        if membership is not None and membership.generation.is_none and self.style != "auto":
            assert not self.subscriptions.assigned(), f"{self.name} reads on what it has lost"

    def _hear(self, error: KafkaError) -> None:
        self.world.say(self.name, f"hears: {error}")
        assert error.code in TAKEN, f"{self.name}: {error}"
        self.fenced = True
        self.closed = True
        finish(self.coordinator.close(ClosingDeadline(self.world.now)))

    def _consume(self, now: float) -> None:
        group = self.group
        moved: dict[TopicPartition, OffsetAndMetadata] = {}
        for tp in self.subscriptions.find_fetchable(now, ()):
            state = self.subscriptions.state(tp)
            position = state.position
            assert position is not None
            seen = group.seen.get(tp, 0)
            assert position <= seen, f"{tp} is read from {position}, and nobody saw what is from {seen} on"
            end = group.ends[tp]
            if position < end:
                state.position = min(end, position + self.world.chance.randint(1, 9))
                group.seen[tp] = max(seen, state.position)
            if state.position is not None and state.position != group.broker.committed.get(tp, 0):
                moved[tp] = OffsetAndMetadata(state.position)
        if moved:
            COMMITS[self.style](self, moved)

    def _commit_manually(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        if self.is_in_good_standing and not self.coordinator.commits.pending:
            self.coordinator.commits.commit_async(offsets)

    def _commit_in_transaction(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """A producer sends the offsets along, and ends its transaction a little later."""
        if self._in_transaction or not self.is_in_good_standing:
            return
        world, broker = self.world, self.group.broker
        place = self.coordinator.group_metadata()
        self._epoch += 1
        producer = self.group.next_producer_id()

        def event(ticket: int) -> TransactionalOffsetsCommitted:
            return TransactionalOffsetsCommitted(ticket, GROUP, offsets, producer, 0, world.wall_ms(), *place[1:])

        error = broker.promise(event, producer)
        world.say(
            self.name,
            f"promises {[f'{tp}={o.offset}' for tp, o in offsets.items()]} in {place.generation_id}: error {error}",
        )
        if not error:
            broker.check_place(offsets, place.generation_id)
            self._in_transaction = True
            commit = world.likely(0.7)
            world.after(world.chance.choice((0.01, 0.3, 6.0)), lambda: self._end(producer, commit, list(offsets)))

    def _end(self, producer: int, commit: bool, partitions: list[TopicPartition]) -> None:
        """The transaction's coordinator ends it, whether its producer lives or not."""
        if self.group.broker.down:
            self.world.after(0.5, lambda: self._end(producer, commit, partitions))
            return
        self.group.broker.end_transaction(producer, commit)
        self._in_transaction = False
        if not commit and self.alive:  # what was read in it is read again
            for tp in partitions:
                state = self.subscriptions.state_or_none(tp)
                if state is not None:
                    state.position, state.is_awaiting_committed = None, True
            self.wake("user")

    def see_what_it_believes(self) -> None:
        """Report the partitions that this member owns."""
        membership = self.membership
        believes = None
        if self.alive and not self.closed and membership is not None and self.is_in_good_standing:
            place = membership.generation
            if place is not self.torn:
                believes = (place, frozenset(self.subscriptions.assigned()))
        if believes != self.believes:
            self.group.owners.change(self.instance or self.name, self.believes, believes)
            self.believes = believes

    def _client(self, who: str) -> SimulatedClient:
        client = SimulatedClient(
            self.world,
            self.name,
            self.metadata
            if who == "user"
            else Metadata([BROKER], max_age_ms=300_000, backoff=ExponentialBackoff(100, 1000, self.world.chance)),
            self._connect,
        )
        client.wake = lambda: self.wake(who)
        if who == "thread":
            self.thread_client = client
            client.refresh = lambda: client.metadata.adopt_cluster(self.group.cluster, self.world.now)
        return client

    def _connect(self, client: SimulatedClient) -> Connection:
        return Connection(self.world, self.group.faults, self.group.broker, client)

    def _make_thread(self, *arguments: Any) -> SteppedThread:
        self.thread = SteppedThread(*arguments)
        self.wake("thread")
        return self.thread


def is_outside(membership: Membership) -> bool:
    """True if the coordinator waits for no request of it, or in any case."""
    if isinstance(membership, ClassicMembership):
        return membership.state in OUTSIDE
    return not membership._is_watched()


def finish(steps: Iterable[Any]) -> None:
    """Make a call that would block, with a zero timeout."""
    for _ in islice(steps, 100):
        pass


COMMITS: dict[str, Callable[[GroupMember, dict[TopicPartition, OffsetAndMetadata]], None]] = {
    "auto": lambda member, offsets: None,
    "manual": GroupMember._commit_manually,
    "transactional": GroupMember._commit_in_transaction,
}
"""Actions of a user after a read."""
