"""A history of a share group over the broker's own shells: the share partitions of the leader, the persister, and the share coordinator.

Three brokers have the real `SharePartitionManager`, `SharePersister`, and `ShareCoordinator` on a `CoordinatorRuntime` over storage's own logs. The network
between them, the metadata and the replication of `__share_group_state` are simulated: a response of the coordinator waits until the
present leader's records are committed, and a new leader has every committed record and some of the others. The judge is `ShareModel`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from ottla.broker.apis import read_share_group_state, write_share_group_state
from ottla.broker.coordinators.coordinator_runtime import CoordinatorContext
from ottla.broker.coordinators.share_coordinator import (
    InitializeState,
    OnResult,
    Operation,
    ShareCoordinator,
    StateResult,
    WriteState,
)
from ottla.broker.coordinators.share_persister import SharePersister
from ottla.broker.event_loop.disk import Disk, Done, Work
from ottla.broker.event_loop.timers import Timer, Timers
from ottla.broker.metadata.internal_topics import SHARE_GROUP_STATE
from ottla.broker.network_server.call import Outcome
from ottla.broker.peers.peers import RemoteBrokers
from ottla.broker.replica_manager.fetch_purgatory import FetchPurgatory
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.share.led_share_partition import LedSharePartition, ShareLeaderContext
from ottla.broker.share.share_counts import ShareCounts
from ottla.broker.share.share_group_settings import EARLIEST, ShareGroupSettings
from ottla.broker.share.share_partition_manager import SharePartitionManager
from ottla.broker.share.share_sessions import SharedPartition
from ottla.broker.state_machines.runtime import Release
from ottla.coordination.cluster.topic import ClusterTopic, PartitionState
from ottla.coordination.share.events import (
    AcquiredRange,
    AcquireMode,
    DeadLetters,
    ShareAcknowledgementBatch,
    ShareLimits,
)
from ottla.coordination.share.record_state import AcknowledgeType
from ottla.coordination.share.share_state import SharePartitionKey
from ottla.errors import ErrorCode, KafkaError, OttlaError
from ottla.model import TopicPartition
from ottla.protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.simulation.share_model import SETTLING, LeaderModel, ShareModel
from tests.simulation.stored_history import FULL, SHM
from tests.simulation.world import World
from tests.storage.batches import batch, bytes_of
from tests.storage.faulty_disk import FaultyDisk

GROUP = "g"
DATA, STATE = TopicPartition("t", 0), TopicPartition(SHARE_GROUP_STATE, 0)
TOPIC_ID, STATE_ID = UUID(int=1), UUID(int=2)
PLACE = SharedPartition(TOPIC_ID, 0)
KEY = SharePartitionKey(GROUP, *PLACE)
NODES = (1, 2, 3)
LOCK_DURATION = 5.0
PATIENCE = 400.0
FETCH_BYTES = 400
"""A few batches."""


class NodeTimers(Timers):
    """The timers of one process, in virtual time. After a crash they do not fire."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self.is_stopped = False

    def schedule(self, deadline: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(deadline, callback)
        self._world.at(deadline, partial(self._fire, timer))
        return timer

    def cancel(self, timer: Timer) -> None:
        timer.callback = None

    def _fire(self, timer: Timer) -> None:
        callback, timer.callback = timer.callback, None
        if callback is not None and not self.is_stopped:
            callback()


class NodeDisk(Disk):
    """Work on the disk that takes a while, without a thread."""

    def __init__(self, node: Node) -> None:
        super().__init__(lambda call: call())
        self._node = node

    def submit(self, work: Work, done: Done) -> None:
        self._node.later(0.5, partial(self._run_work, work, done))

    def _run_work(self, work: Work, done: Done) -> None:
        try:
            work()
        except KafkaError as error:
            done(error)
        else:
            done(None)


class Replicas:
    """The truth about a replicated partition: its leader, and what is committed."""

    def __init__(self) -> None:
        self.leader = 1
        self.epoch = 0
        self.committed = 0
        self._held: list[tuple[Node, int, int, Release]] = []
        """Responses that wait: the broker, its leader epoch, the end of its log, and the callback."""

    def hold(self, node: Node, release: Release) -> None:
        end = node.state_log.end_offset
        self._held.append((node, self.epoch if self.leader == node.number else -1, end, release))
        node.world.after(node.world.chance.random() * 0.1, partial(self._commit, node, end))

    def _commit(self, node: Node, end: int) -> None:
        """The followers have fetched up to `end` from this broker, if it still is the leader."""
        if node.is_alive and self.leader == node.number:
            self.committed = max(self.committed, min(end, node.state_log.end_offset))
        held, self._held = self._held, []
        for each in held:
            holder, epoch, wanted, release = each
            if not holder.is_alive:
                continue
            if holder.number != self.leader or epoch != self.epoch:
                release(KafkaError(ErrorCode.NOT_COORDINATOR, "another broker leads"))
            elif wanted <= self.committed:
                release(None)
            else:
                self._held.append(each)


class NodeTopics:
    """The topics as one broker knows them."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def find_by_name(self, name: str) -> ClusterTopic | None:
        leader, epoch = self._node.known[name]
        topic_id = STATE_ID if name == SHARE_GROUP_STATE else TOPIC_ID
        return ClusterTopic(name, topic_id, (PartitionState(0, leader, epoch, NODES, NODES),))

    def with_id(self, topic_id: UUID) -> ClusterTopic | None:
        return self.find_by_name(SHARE_GROUP_STATE if topic_id == STATE_ID else DATA.topic)

    def absent_code(self, name: str, index: int) -> int:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER


class NodePartitions:
    """The replicas of one broker."""

    def __init__(self, *partitions: Partition) -> None:
        self._partitions = {each.topic_partition: each for each in partitions}

    def find(self, topic: str, index: int) -> Partition | None:
        return self._partitions.get(TopicPartition(topic, index))


class NodeCopier:
    """Copies to the dead letter queue that take a while. A crash loses the result."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def copy(
        self,
        group_id: str,
        source: Partition,
        letters: DeadLetters,
        settings: ShareGroupSettings,
        on_done: Callable[[], None],
    ) -> None:
        def finish() -> None:
            self._node.history.model.copied.update(range(letters.first_offset, letters.last_offset + 1))
            on_done()

        self._node.later(1.0, finish)

    def handle_new_metadata(self) -> None:
        pass

    def close(self) -> None:
        pass


class NodePeer:
    """A connection to another broker that may lose a request or its response."""

    def __init__(self, node: Node, to: int) -> None:
        self._node = node
        self._to = to
        self._serial = 0

    def send_request(self, question: Any) -> None:
        self._serial += 1
        node, chance = self._node, self._node.world.chance
        serial = self._serial
        has_answer = False

        def answer(response: Any) -> None:
            nonlocal has_answer
            if not has_answer and serial == self._serial:
                has_answer = True
                question.done(response)

        lost = OttlaError("the connection is lost")
        fails, arrives = node.world.likely(node.history.lost), chance.random() < 0.5
        if fails:
            node.later(2.0, lambda: answer(lost))
        if not fails or arrives:
            span = chance.random() * (8.0 if fails else 0.2)
            respond = (lambda response: None) if fails else (lambda response: node.later(0.1, lambda: answer(response)))
            node.world.after(
                span, lambda: node.history.nodes[self._to].receive(question.request, respond, answer, lost)
            )

    def close(self) -> None:
        self._serial += 1


class JudgedPersister(SharePersister):
    """The persister, whose successful writes the judge knows."""

    model: ShareModel

    def submit(self, operation: Operation, on_result: OnResult) -> None:
        def judge(result: StateResult) -> None:
            if isinstance(operation, WriteState) and not result.error:
                self.model.stored(operation)
            on_result(result)

        super().submit(operation, judge)


class Node:
    """A broker. Its logs survive a crash, everything else is made again."""

    def __init__(self, history: ShareShellHistory, number: int, folder: Path) -> None:
        self.history = history
        self.world = history.world
        self.number = number
        self.is_alive = True
        config = LogConfig(segment_bytes=1 << 20, index_interval_bytes=4096)
        self.state_log = Log.open(folder, config, now_ms=self.world.wall_ms(), clean=True)
        self.known = {DATA.topic: (1, 0), SHARE_GROUP_STATE: (1, 0)}
        """The leader and the epoch of each partition, as this broker knows them."""
        self._start()

    def _start(self) -> None:
        self.timers = NodeTimers(self.world)
        self.waiting = FetchPurgatory(self.timers)
        self.data = Partition(DATA, TOPIC_ID, lambda *_: self.history.data_log, leader_epoch=0)
        self.state = Partition(STATE, STATE_ID, lambda *_: self.state_log, leader_epoch=0, internal=True)
        topics: Any = NodeTopics(self)
        partitions: Any = NodePartitions(self.data, self.state)
        commitment: Any = SimpleNamespace(hold=self._hold)
        self.coordinator = ShareCoordinator(
            self.history.updates_per_snapshot,
            CoordinatorContext(
                topics=topics,
                partitions=partitions,
                clock=self.world,
                timers=self.timers,
                disk=NodeDisk(self),
                commitment=commitment,
                on_append=lambda partition, size: None,
                ensure_topic=lambda name: topics.find_by_name(name),
                take_out_of_service=lambda partition, error: error,
            ),
        )
        connect: Any = lambda purpose, broker: NodePeer(self, broker)  # noqa: E731
        address: Any = lambda broker: (f"host{broker}", 9092)  # noqa: E731
        self.persister = JudgedPersister(
            lambda: self.coordinator,
            lambda key: self.known[SHARE_GROUP_STATE][0],
            self.number,
            self.timers,
            self.world,
            RemoteBrokers(address, connect),
        )
        self.persister.model = self.history.model
        context = ShareLeaderContext(
            self.persister,
            self.world,
            self.timers,
            self.waiting,
            lambda group_id: self.history.settings,
            NodeCopier(self),
            ShareCounts(),
        )
        self.manager = SharePartitionManager(topics, partitions, context, lambda: 100)
        self._learn_roles()

    def _hold(self, partition: Partition, release: Release) -> bool:
        self.history.state_replicas.hold(self, release)
        return True

    def _learn_roles(self) -> None:
        for partition in (self.data, self.state):
            leader, epoch = self.known[partition.topic_partition.topic]
            led = partition.leads, partition.leader_epoch
            partition.leads, partition.leader_epoch = leader == self.number, epoch
            if led[0] and (not partition.leads or led[1] != epoch):
                self.coordinator.retire(partition)
                self.manager.retire(partition)

    def learn(self, topic: str, leader: int, epoch: int) -> None:
        """Handle new metadata."""
        if self.is_alive and epoch > self.known[topic][1]:
            self.known[topic] = leader, epoch
            self._learn_roles()
            self.persister.handle_new_metadata()

    def later(self, most: float, act: Callable[[], None]) -> None:
        """Do something in this process within `most` seconds."""
        self.timers.schedule(self.world.now + self.world.chance.random() * most, act)

    def crash(self) -> None:
        self.is_alive = False
        self.timers.is_stopped = True
        self.persister.close()

    def restart(self) -> None:
        if not self.is_alive:
            self.is_alive = True
            self.known = {
                DATA.topic: (self.history.data_replicas.leader, self.history.data_replicas.epoch),
                SHARE_GROUP_STATE: (self.history.state_replicas.leader, self.history.state_replicas.epoch),
            }
            self._start()

    def receive(
        self, request: Any, respond: Callable[[Any], None], fail: Callable[[Any], None], lost: OttlaError
    ) -> None:
        """Handle a request of another broker by its API."""
        if not self.is_alive:
            self.world.after(0.5, lambda: fail(lost))
            return
        api = read_share_group_state if isinstance(request, ReadShareGroupStateRequest) else write_share_group_state
        node: Any = SimpleNamespace(
            features=SimpleNamespace(finalized={"share.version": 2}), share_coordinator=self.coordinator
        )
        call: Any = SimpleNamespace(answer=respond)
        response = api.handle(node, call, request)
        if not isinstance(response, Outcome):
            respond(response)


class Member:
    """A consumer of the group, with a share session at the broker that it takes for the leader."""

    def __init__(self, history: ShareShellHistory, name: str, *, is_diligent: bool = False) -> None:
        self.history = history
        self.name = name
        self.is_alive = True
        self.is_diligent = is_diligent
        self.node: Node | None = None
        self.led: LedSharePartition | None = None
        history.world.after(0.01, self._poll)

    def say(self, *what: object) -> None:
        self.history.world.say(self.name, *what)

    def _poll(self) -> None:
        world, chance, history = self.history.world, self.history.world.chance, self.history
        if not self.is_alive:
            return
        led = self._find_led()
        if led is None or not led.is_ready or not led.may_acquire:
            world.after(0.3, self._poll)
            return
        try:
            records = led.read(FETCH_BYTES, 10, history.settings)
        except KafkaError:
            records = None
        mode, limit = chance.choice(tuple(AcquireMode)), chance.choice((1, 3, 10))
        acquired = () if records is None else led.acquire(self.name, records, limit, mode, 4)
        if not acquired:
            world.after(0.3, self._poll)
            return
        self.say("acquires at", self.node and self.node.number, *acquired)
        history.model.acquired(history.model_of(led), self.name, acquired, world.now)
        span = 0.05 if self.is_diligent else chance.choice((0.01, 0.2, 1.0, 4.0, 7.0))
        world.after(span, lambda: self._finish(led, acquired))

    def _find_led(self) -> LedSharePartition | None:
        """Return the share partition at the leader. A new leader or a new object there needs a new session."""
        node = self.history.nodes[self.history.data_replicas.leader]
        if self.node is not None and self.history.world.likely(0.3):
            node = self.node  # its metadata are old
        if not node.is_alive:
            return None
        if node is not self.node or (self.led is not None and self.led.has_ended):
            self.node = node
            node.manager.sessions.open(GROUP, self.name, self, [PLACE])
        found = node.manager.find(GROUP, PLACE)
        self.led = None if isinstance(found, int) else found
        return self.led

    def _serves(self, led: LedSharePartition) -> bool:
        return self.node is not None and self.node.is_alive and led.is_ready and self.led is led

    def _finish(self, led: LedSharePartition, acquired: tuple[AcquiredRange, ...], is_renewed: bool = False) -> None:
        world, chance, history = self.history.world, self.history.world.chance, self.history
        if not self.is_alive:
            return
        if not self._serves(led):
            world.after(0.1, self._poll)
            return
        everything = [offset for each in acquired for offset in range(each.first_offset, each.last_offset + 1)]
        model = history.model_of(led)
        if not self.is_diligent and not is_renewed and chance.random() < 0.2:
            held = [offset for offset in everything if model.has_lock(self.name, offset, world.now)]
            batches = [ShareAcknowledgementBatch(*each[:2], [AcknowledgeType.RENEW]) for each in acquired]
            led.acknowledge(self.name, batches, history.settings, lambda code: self._renewed(led, acquired, held, code))
            return
        types = {offset: self._draw_type() for offset in everything}
        batches = [
            ShareAcknowledgementBatch(*each[:2], [types[offset] for offset in range(each[0], each[1] + 1)])
            for each in acquired
        ]
        history.model.requested.update(offset for offset, kind in types.items() if kind in SETTLING)
        # An acknowledgement after the lock has expired promises nothing.
        promised = {offset: kind for offset, kind in types.items() if model.has_lock(self.name, offset, world.now)}
        self.say("acknowledges", types)
        led.acknowledge(self.name, batches, history.settings, lambda code: self._answered(led, promised, code))

    def _draw_type(self) -> int:
        if self.is_diligent:
            return AcknowledgeType.ACCEPT
        return self.history.world.chance.choices((1, 2, 3, 0), (10, 5, 1.5, 0.5))[0]

    def _answered(self, led: LedSharePartition, types: dict[int, int], code: int) -> None:
        if not code:
            model = self.history.model_of(led)
            self.say("is confirmed", *types)
            self.history.model.settled(model, types)
            self.history.confirmed += len(types)
            model.unlock(self.name, types)
        self.history.world.after(0.01, self._poll)

    def _renewed(
        self, led: LedSharePartition, acquired: tuple[AcquiredRange, ...], offsets: list[int], code: int
    ) -> None:
        world = self.history.world
        if code:
            world.after(0.01, self._poll)
            return
        self.history.model.renewed(self.history.model_of(led), self.name, offsets, world.now)
        world.after(world.chance.choice((0.5, 4.0)), lambda: self._finish(led, acquired, is_renewed=True))

    def leave(self, *, closes: bool) -> None:
        """End. Its session is closed, or its locks expire."""
        self.is_alive = False
        node, led = self.node, self.led
        if not closes or node is None or led is None or not self._serves(led):
            return
        model = self.history.model_of(led)

        def closed(place: SharedPartition, code: int) -> None:
            if not code:
                self.history.model.closed(model, self.name)

        self.say("closes its session")
        node.manager.sessions.close(GROUP, self.name)
        node.manager.release(GROUP, self.name, [PLACE], closed)


class ShareShellHistory:
    """A partition that a share group reads, from its first record to the last."""

    def __init__(self, seed: int) -> None:
        self.world = world = World(seed)
        chance = world.chance
        limits = ShareLimits(
            chance.choice((5, 20, 1000)), chance.choice((2, 3, 5)), LOCK_DURATION, chance.random() < 0.5
        )
        queue = "dlq.g" if limits.has_dead_letter_queue else ""
        self.settings = ShareGroupSettings(limits, EARLIEST, False, True, queue, False)
        self.model = ShareModel(LOCK_DURATION, limits.max_delivery_count)
        self.updates_per_snapshot = chance.choice((1, 3, 500))
        self.lost = chance.choice((0.0, 0.1, 0.3))
        """The probability that a request between brokers fails."""
        self.data_replicas, self.state_replicas = Replicas(), Replicas()
        self.members: list[Member] = []
        self.nodes: dict[int, Node] = {}
        self.confirmed = self.elections = 0
        """Counts, for a test that histories are eventful."""
        self._models: weakref.WeakKeyDictionary[LedSharePartition, LeaderModel] = weakref.WeakKeyDictionary()
        self._names = count()
        self.data_log: Log
        self._state_disk: FaultyDisk

    def model_of(self, led: LedSharePartition) -> LeaderModel:
        """Return the judge's part for one share partition at one leader."""
        return self._models.setdefault(led, LeaderModel(led.partition.leader_epoch))

    def transcript(self) -> str:
        return self.world.transcript()

    def run(self) -> None:
        """Trouble, then quiet, in which one diligent member reads everything that is left."""
        with ExitStack() as stack:
            root = Path(stack.enter_context(TemporaryDirectory(dir=SHM if SHM.is_dir() else None)))
            now_ms = self.world.wall_ms()
            self.data_log = Log.open(root / "t-0", LogConfig(index_interval_bytes=100), now_ms=now_ms, clean=True)
            stack.callback(self.data_log.release)
            self._state_disk = stack.enter_context(FaultyDisk(root / "state", self.world.chance))
            for number in NODES:
                node = self.nodes[number] = Node(self, number, root / "state" / str(number))
                stack.callback(node.state_log.release)
            self._initialize()
            self._play()
            for node in self.nodes.values():
                node.crash()

    def _initialize(self) -> None:
        """The group coordinator creates the state."""
        results: list[StateResult] = []
        self.nodes[1].persister.submit(InitializeState(KEY, 0, -1), results.append)
        self.world.run_until(self.world.now + 10.0)
        assert [each.error for each in results] == [0]

    def _play(self) -> None:
        world, chance = self.world, self.world.chance
        end = world.now + chance.choice((20.0, 60.0))
        self._produce()
        while world.now < end:
            world.run_until(world.now + chance.expovariate(1.0))
            self._befall()
        self._calm_down()
        deadline = world.now + PATIENCE
        while world.now < deadline and not self._is_drained():
            world.run_until(world.now + 5.0)
        assert self._is_drained(), f"the window leaks: {self._start_offset()} of {self.data_log.end_offset}"
        # Records that were deleted from the log may never have been delivered.
        live = range(self.data_log.start_offset, self.data_log.end_offset)
        self.model.check_end(live, self.settings.limits.has_dead_letter_queue)

    def _start_offset(self) -> int:
        found = self.nodes[self.data_replicas.leader].manager.find_loaded(GROUP, PLACE)
        return -1 if found is None else found.start_offset

    def _is_drained(self) -> bool:
        return self._start_offset() == self.data_log.end_offset

    def _calm_down(self) -> None:
        self.lost = 0.0
        self._state_disk.failing = set()
        for member in self.members:
            member.is_alive = False
        for node in self.nodes.values():
            node.restart()
        self.members.append(Member(self, "diligent", is_diligent=True))

    def _befall(self) -> None:
        happenings: dict[Callable[[], None], float] = {
            self._produce: 4,
            self._join: 3,
            self._leave: 1,
            self._move_data: 0.7,
            self._move_state: 0.7,
            self._crash: 0.7,
            self._trim: 0.3,
            self._prune: 0.3,
            self._fill_disk: 0.3,
        }
        self.world.chance.choices(list(happenings), list(happenings.values()))[0]()

    def _produce(self) -> None:
        chance, now_ms = self.world.chance, self.world.wall_ms()
        for _ in range(chance.randint(1, 4)):
            values = [b"x"] * chance.choice((1, 1, 4, 8))
            self.data_log.append(batch(*values), leader_epoch=0, now_ms=now_ms)

    def _join(self) -> None:
        if sum(member.is_alive for member in self.members) < 4:
            self.members.append(Member(self, f"m{next(self._names)}"))

    def _leave(self) -> None:
        living = [member for member in self.members if member.is_alive]
        if living:
            self.world.chance.choice(living).leave(closes=self.world.likely(0.5))

    def _move_data(self) -> None:
        self._elect(self.data_replicas, DATA.topic)

    def _move_state(self) -> None:
        self._elect(self.state_replicas, SHARE_GROUP_STATE)

    def _elect(self, replicas: Replicas, topic: str) -> None:
        """Elect another leader, of which each broker learns at its own time."""
        living = [number for number, node in self.nodes.items() if node.is_alive and number != replicas.leader]
        if not living:
            return
        chance, previous = self.world.chance, replicas.leader
        replicas.leader = chance.choice(living)
        replicas.epoch += 1
        self.elections += 1
        self.world.say("controller", "elects", replicas.leader, "for", topic, "in epoch", replicas.epoch)
        if topic == SHARE_GROUP_STATE:
            self._replicate(self.nodes[previous].state_log, self.nodes[replicas.leader].state_log, replicas)
        for node in self.nodes.values():
            act = partial(node.learn, topic, replicas.leader, replicas.epoch)
            span = chance.choice((0.0, 0.1, 1.0, 3.0)) * chance.random()
            # The replica of the new leader is changed above, so this broker must not act as an earlier leader any more.
            self.world.after(0.0 if node.number == replicas.leader else span, act)

    def _replicate(self, source: Log, target: Log, replicas: Replicas) -> None:
        """Give the new leader what was committed, and some of the records after it."""
        now_ms = self.world.wall_ms()
        self._state_disk.failing = set()
        target.truncate_fully_and_start_at(source.start_offset, now_ms=now_ms)
        if source.end_offset > source.start_offset:
            data = bytes_of(source, source.start_offset)
            target.append_as_is(data, leader_epoch=replicas.epoch, now_ms=now_ms)
        assert target.end_offset == source.end_offset
        if replicas.committed < target.end_offset:
            target.truncate_to(self.world.chance.randint(replicas.committed, target.end_offset), now_ms=now_ms)
        replicas.committed = max(replicas.committed, target.start_offset)
        self.world.say("controller", "the new leader has", target.end_offset, "of", source.end_offset)

    def _crash(self) -> None:
        """Stop a broker. Others lead its partitions, and it starts again after a while."""
        living = [node for node in self.nodes.values() if node.is_alive]
        if len(living) < 2:
            return
        node = self.world.chance.choice(living)
        self.world.say(f"broker {node.number}", "crashes")
        node.crash()
        for replicas, topic in ((self.data_replicas, DATA.topic), (self.state_replicas, SHARE_GROUP_STATE)):
            if replicas.leader == node.number:
                self._elect(replicas, topic)
        self.world.after(self.world.chance.choice((0.1, 3.0, 8.0)), node.restart)

    def _trim(self) -> None:
        """Delete records before the window, and two in it."""
        offset = min(self._start_offset() + 2, self.data_log.end_offset)
        if offset > self.data_log.start_offset:
            self.data_log.advance_start(offset)

    def _prune(self) -> None:
        node = self.nodes[self.state_replicas.leader]
        if node.is_alive and node.state.leads and self.state_replicas.committed == node.state_log.end_offset:
            node.coordinator.prune()

    def _fill_disk(self) -> None:
        """Let appends of states fail for a while."""
        self._state_disk.failing = set(FULL)

        def free() -> None:
            self._state_disk.failing = set()

        self.world.after(self.world.chance.choice((0.2, 2.0)), free)
