"""A random history of a cluster under the real controller, and its invariants.

Brokers start, are isolated, lose power and stop. Leaders write, and followers copy. The active controller changes and loses
uncommitted records, also within transactions of the metadata. The wall clock jumps.

The auditor has its own list of acknowledged records. After every event it checks that each leader, each running ISR member and
each eligible leader has all of them. A loss is allowed only if the metadata mark the leader as recovering. The auditor also has
its own record of the committed metadata and of heartbeats: brokers act on committed metadata only, and only silent brokers are
fenced for silence.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from ottla.coordination.cluster.events import FeatureChangeRequested
from ottla.coordination.cluster.features import ELR_VERSION
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.node_records import BeginTransactionRecord, EndTransactionRecord
from ottla.coordination.cluster.records import (
    FeatureLevelRecord,
    PartitionChangeRecord,
    decode_record,
    encode_record,
)
from ottla.coordination.cluster.topic import PartitionState
from ottla.coordination.controller.config import ControllerConfig
from ottla.coordination.controller.controller import SESSION_RECORDS, Controller
from ottla.coordination.controller.events import (
    ControllerActivated,
    ControllerRequest,
    PreferredElectionDue,
    RandomValues,
    SessionTimerExpired,
)
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    RequestDirectoryData,
)
from ottla.protocol.messages.assign_replicas_to_dirs import RequestPartitionData as RequestPartitionInDirectory
from ottla.protocol.messages.assign_replicas_to_dirs import RequestTopicData as InDirectory
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.protocol.messages.broker_registration import BrokerRegistrationResponse
from ottla.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.protocol.messages.update_features import FeatureUpdateKey
from ottla.protocol.schema import Message
from tests.coordination.controller.cluster import TOPIC, registration
from tests.simulation.committed_states import CommittedStates, seen
from tests.simulation.model_broker import ModelBroker, Value

PARTITIONS = 2
LENGTH = 300
"""Steps before all is healed."""
Told = Callable[[Any], None]
IN_PARTS = SessionTimerExpired | PreferredElectionDue
"""Events without a response and without offsets: their records may be written as a transaction."""


class ControllerHistory:
    """One cluster, one seed."""

    def __init__(self, seed: int, brokers: int = 4) -> None:
        self.random = Random(seed)
        self.now, self.count = 0.0, 0
        self.calendar = 0.0
        """The time of day, which jumps."""
        self.elr, self.min_isr = self._rules()
        self.brokers = {number: ModelBroker(number) for number in range(1, brokers + 1)}
        self.config = ControllerConfig("c", topic_defaults={"min.insync.replicas": str(self.min_isr)})
        self.controller = Controller(self.config)
        self.committed: list[Message] = []
        self.image = ClusterMetadata()
        """The metadata as committed."""
        self.truth = CommittedStates()
        self.heard: dict[int, float] = {}
        """The last heartbeat of each broker at the active controller, or its registration."""
        self.pending: list[tuple[list[Message], Told, Any]] = []
        self.acknowledged: dict[int, list[Value]] = {index: [] for index in range(PARTITIONS)}
        self.happened: list[str] = []
        self.elections = self.losses = 0
        self._begin()

    def _rules(self) -> tuple[bool, int]:
        """Draw `(elr, min_isr)`: True if the last ISR members stay eligible to lead, and `min.insync.replicas`."""
        return self.random.random() < 0.8, self.random.choice((1, 2))

    def _begin(self) -> None:
        self._append([FeatureLevelRecord("metadata.version", 30), FeatureLevelRecord(ELR_VERSION, int(self.elr))])
        self.settle(5)
        replicas = [self.random.sample(sorted(self.brokers), 3) for _ in range(PARTITIONS)]
        assigned = [CreatableReplicaAssignment(index, each) for index, each in enumerate(replicas)]
        request = CreateTopicsRequest([CreatableTopic("t", -1, -1, assigned)])
        self.happen(ControllerRequest(1, request, RandomValues([TOPIC])))
        self.settle(5)

    # Appending, and committing, which is later.

    def _append(self, records: Any, story: Told = lambda reply: None, reply: Any = None) -> None:
        written = []
        for record in records:
            if isinstance(record, SESSION_RECORDS):
                self.controller.replay(record)
                continue
            before = self._partition(self.controller.metadata, record)
            record = decode_record(encode_record(record))
            self.controller.replay(record)
            self.controller.check()
            self._check_change(before, self._partition(self.controller.metadata, record))
            written.append(record)
        self.pending.append((written, story, reply))

    def _append_in_parts(self, records: Any) -> None:
        """Append as a transaction, of which any record may be the last that is committed (KIP-868), as Kafka's
        controllers may do.
        """
        for record in (BeginTransactionRecord("parts"), *records, EndTransactionRecord()):
            self._append([record])

    def happen(self, event: Any, story: Told = lambda reply: None) -> Any:
        """Have the controller decide; what it answers, once that is committed."""
        decision = self.controller.decide(event, self.clock())
        if isinstance(event, IN_PARTS) and self.random.random() < 0.5:
            self._append_in_parts(decision.records)
            return None
        reply = decision.replies[0].message if decision.replies else None
        self._append(decision.records, story, reply)
        return reply

    def clock(self) -> float:
        """The clock of the controllers."""
        return self.now

    def commit(self) -> None:
        """The oldest decision is on most voters' disks: it counts, and is answered."""
        if self.pending:
            records, reported, reply = self.pending.pop(0)
            for record in records:
                self.image.replay(record)
                for counting in self.truth.commit(record):
                    self._note_loss(counting)
            self.committed += records
            reported(reply)

    def fail_over(self) -> None:
        """Another controller, which has what was committed, and perhaps more."""
        for _ in range(self.random.randint(0, len(self.pending))):
            self.commit()
        self.pending.clear()
        metadata = ClusterMetadata()
        for record in (*self.image.records(), *self.truth.unfinished):
            metadata.replay(record)
        self.heard = dict.fromkeys(self.brokers, self.now)
        self.controller = Controller(self.config, metadata, len(self.committed))
        self.happen(ControllerActivated())

    @staticmethod
    def _partition(metadata: ClusterMetadata, record: Message) -> PartitionState | None:
        topic = metadata.topics.get("t")
        if not isinstance(record, PartitionChangeRecord) or topic is None:
            return None
        return topic.partitions[record.partition_id]

    def _check_change(self, before: PartitionState | None, after: PartitionState | None) -> None:
        if before is None or after is None or self.controller.metadata.in_transaction:
            return
        assert after.partition_epoch == before.partition_epoch + 1
        assert 0 <= after.leader_epoch - before.leader_epoch <= 1
        assert after.leader == before.leader or after.leader_epoch > before.leader_epoch
        self.elections += after.leader != before.leader

    def _note_loss(self, record: Message) -> None:
        """A leader in recovery keeps its records: all others are lost, and reported."""
        state = self._partition(self.image, record)
        if isinstance(record, PartitionChangeRecord) and state and record.leader >= 0 and state.leader_recovery_state:
            has = self.brokers[record.leader].log(record.partition_id)
            values = self.acknowledged[record.partition_id]
            kept = next((at for at, value in enumerate(values) if at >= len(has) or has[at] != value), len(values))
            self.losses += kept < len(values)
            del values[kept:]

    # What brokers do.

    def start(self, broker: ModelBroker) -> None:
        broker.start()
        self.register(broker)

    def register(self, broker: ModelBroker) -> None:
        """Register, with retries: the response may be lost with its controller, or the previous incarnation is still
        active.
        """
        incarnation = broker.incarnation
        request = registration(
            broker.number,
            incarnation_id=incarnation,
            log_dirs=[broker.directory],
            previous_broker_epoch=broker.clean_epoch,
        )

        def handle_answer(answer: BrokerRegistrationResponse) -> None:
            assert answer.error_code in (0, ErrorCode.DUPLICATE_BROKER_REGISTRATION)
            if broker.running and broker.incarnation == incarnation and not answer.error_code:
                broker.epoch, broker.clean_epoch = answer.broker_epoch, -1

        self.happen(ControllerRequest(1, request), handle_answer)

    def beat(self, broker: ModelBroker) -> None:
        epoch = broker.epoch
        if epoch < 0:
            self.register(broker)
            return

        def handle_answer(answer: BrokerHeartbeatResponse) -> None:
            if broker.running and broker.epoch == epoch:
                assert answer.error_code in (0, ErrorCode.STALE_BROKER_EPOCH)
                broker.fenced = answer.is_fenced
                if answer.should_shut_down:
                    broker.stop_cleanly()

        request = BrokerHeartbeatRequest(broker.number, epoch, broker.applied - 1, want_shut_down=broker.leaving)
        if not self.happen(ControllerRequest(1, request), handle_answer).error_code:
            self.heard[broker.number] = self.now

    def learn(self, broker: ModelBroker, most: int | None = None) -> None:
        end = None if most is None else broker.applied + most
        broker.apply(self.committed[broker.applied : end])

    def write(self, broker: ModelBroker, index: int) -> None:
        """Write to every broker that considers itself the leader."""
        if index in broker.leaderships:
            self.count += 1
            broker.log(index).append((broker.leaderships[index].epoch, self.count))
            self.acknowledge(broker, index)

    def copy(self, broker: ModelBroker, index: int) -> None:
        """A follower fetches; a leader of another epoch refuses it."""
        state = broker.states()[index] if broker.states() else None
        leader = None if state is None else self.brokers.get(state.leader)
        if state is None or leader is None or leader is broker or broker.number not in state.replicas:
            return
        leadership = leader.leaderships.get(index)
        if leader.running and leadership is not None and leadership.epoch == state.leader_epoch:
            broker.fetch(leader, index, self.random.randint(0, 4))
            self.acknowledge(leader, index)

    def acknowledge(self, leader: ModelBroker, index: int) -> None:
        before = leader.leaderships[index].high_watermark
        end = leader.advance(index, self.min_isr)
        values = self.acknowledged[index]
        if end > max(before, len(values)):  # what it acknowledged before, and was lost since, is not acknowledged again
            assert leader.log(index)[: len(values)] == values, "two leaders acknowledged different records"
            values.extend(leader.log(index)[len(values) : end])

    def report_directory(self, broker: ModelBroker, index: int) -> None:
        """Report the directory of a replica if the controllers assume another one."""
        if broker.running and broker.states() and broker.untold(index):
            reported = RequestDirectoryData(
                broker.directory, [InDirectory(TOPIC, [RequestPartitionInDirectory(index)])]
            )
            self.happen(ControllerRequest(1, AssignReplicasToDirsRequest(broker.number, broker.epoch, [reported])))

    def propose(self, broker: ModelBroker, index: int, keeps: float = 0.7) -> None:
        """Propose an ISR: a leader adds caught-up followers, and keeps or drops members."""
        leadership = broker.leaderships.get(index)
        if leadership is None:
            return
        state = broker.states()[index]
        floor = max(leadership.high_watermark, leadership.start)
        isr = [broker.number]
        for each in state.replicas:
            end, _ = leadership.fetched.get(each, (-1, -1))
            if each != broker.number and ((each in state.isr and self.random.random() < keeps) or end >= floor):
                isr.append(each)
        if set(isr) == set(state.isr) and state.leader_recovery_state == 0:
            return
        epochs = {each: leadership.fetched.get(each, (0, -1))[1] for each in isr} | {broker.number: broker.epoch}
        wanted = [BrokerState(each, epochs[each]) for each in isr]
        asked = RequestPartitionData(index, state.leader_epoch, (), wanted, 0, state.partition_epoch)
        leadership.proposed |= set(isr)
        self.happen(
            ControllerRequest(1, AlterPartitionRequest(broker.number, broker.epoch, [RequestTopicData(TOPIC, [asked])]))
        )

    # What chance draws.

    def step(self) -> None:
        broker = self.brokers[self.random.choice(sorted(self.brokers))]
        index = self.random.randrange(PARTITIONS)
        name = self.random.choices(list(STEPS), list(WEIGHTS.values()))[0]
        self.happened.append(f"{self.now:6.1f} {name} {broker.number} {index}")
        STEPS[name](self, broker, index)
        self.audit()

    def audit(self) -> None:
        for broker in self.brokers.values():
            assert seen(broker.metadata) == self.truth.at(broker.applied), f"{broker.number} knows what is not so"
        for state in self.states():
            values = self.acknowledged[state.index]
            for number in {*state.isr, *state.elr, state.leader} - {-1}:
                broker, known = self.brokers[number], self.image.registrations.get(number)
                if broker.running and known is not None and known.epoch == broker.epoch:
                    has = broker.log(state.index)[: len(values)]
                    what = "leads" if number == state.leader else "may lead"
                    assert has == values, f"{number} {what} {state.index}, and lacks what was acknowledged"

    def states(self) -> tuple[PartitionState, ...]:
        """The partitions as committed."""
        return self.image.topics["t"].partitions if "t" in self.image.topics else ()

    def transcript(self) -> str:
        return "\n".join(self.happened[-60:])

    def wait(self, seconds: float) -> None:
        """Advance the time: exactly the brokers without a heartbeat for a session are fenced."""
        self.now += seconds
        self.calendar += seconds
        before = self._unfenced()
        self.happen(SessionTimerExpired())
        silent = {each for each in before if self.now >= self.heard[each] + self.config.session_timeout}
        assert before - self._unfenced() == silent, f"of {before} were silent: {silent}"

    def _unfenced(self) -> set[int]:
        known = self.controller.metadata.registrations
        return {number for number, each in known.items() if not each.fenced}

    def settle(self, rounds: int = 40) -> None:
        """Run without faults and writes: all partitions get leaders, and finally every replica is in the ISR."""
        for left in reversed(range(rounds)):
            self.wait(1.0)
            while self.pending:
                self.commit()
            for broker in self.brokers.values():
                broker.reachable = True
                if not broker.running:
                    self.start(broker)
                else:
                    self.beat(broker)
                self.learn(broker)
            for index in range(PARTITIONS):
                for broker in self.brokers.values():
                    self.copy(broker, index)
                    self.propose(broker, index, 1.0)
                    self.report_directory(broker, index)
            if left < 10:
                assert all(state.leader >= 0 for state in self.states()), "nobody leads"
                self.happen(PreferredElectionDue(1))
            self.audit()

    def run(self) -> None:
        """Draw what happens, then heal all."""
        for _ in range(LENGTH):
            self.step()
        self.happened.append("settle")
        self.settle()
        self.check_settled()

    def check_settled(self) -> None:
        for state in self.states():
            assert set(state.isr) == set(state.replicas), f"not all in sync: {state}"
            assert state.leader == state.replicas[0], f"not led by the preferred one: {state}"
            assert (state.adding_replicas, state.removing_replicas, state.elr) == ((), (), ()), str(state)
            assert state.leader_recovery_state == 0
            logs = [self.brokers[each].log(state.index) for each in state.replicas]
            assert all(log == logs[0] for log in logs)
            assert logs[0][: len(self.acknowledged[state.index])] == self.acknowledged[state.index]
        assert not any(each.fenced for each in self.image.registrations.values()), "somebody is fenced"

    def move(self, broker: ModelBroker, index: int) -> None:
        replicas = None if self.random.random() < 0.3 else self.random.sample(sorted(self.brokers), 3)
        wanted = ReassignableTopic("t", [ReassignablePartition(index, replicas)])
        self.happen(ControllerRequest(1, AlterPartitionReassignmentsRequest(topics=[wanted])))

    def elect(self, broker: ModelBroker, index: int) -> None:
        self.happen(ControllerRequest(1, ElectLeadersRequest(0, [TopicPartitions("t", [index])])))

    def crash(self, broker: ModelBroker, index: int) -> None:
        if broker.running:
            # Without ELR the controller does not know which broker lost records, and trusts every former ISR member.
            broker.crash(losing=self.elr and self.random.random() < 0.7)

    def leave(self, broker: ModelBroker, index: int) -> None:
        broker.leaving = broker.running

    def cut(self, broker: ModelBroker, index: int) -> None:
        broker.reachable = not broker.reachable

    def level(self, broker: ModelBroker, index: int) -> None:
        """It stays where it is: losses of power are not for every level."""

    def jump(self, broker: ModelBroker, index: int) -> None:
        self.calendar += self.random.choice((-3600.0, -20.0, 20.0, 3600.0))

    def force(self, broker: ModelBroker, index: int) -> None:
        broker.forced[index] = len(broker.log(index))


class EmptiedHistory(ControllerHistory):
    """Processes are killed, also all at once, and the disk of one of them is emptied again and again: nothing that was acknowledged is lost.

    No power is lost, so that what was written is there, and two have to be in sync for an acknowledgment.
    """

    def _rules(self) -> tuple[bool, int]:
        self.emptied = self.random.randint(1, 4)
        return True, 2

    def crash(self, broker: ModelBroker, index: int) -> None:
        killed = list(self.brokers.values()) if self.random.random() < 0.3 else [broker]
        for each in killed:
            if each.running and each.number == self.emptied and self.random.random() < 0.7:
                each.lose_disk()
            elif each.running:
                each.crash(losing=False)

    def check_settled(self) -> None:
        super().check_settled()
        assert not self.losses, "what was acknowledged is lost"


class LevelledHistory(ControllerHistory):
    """The eligibility of the last ISR members to lead changes repeatedly; processes are killed, and no power is lost.

    The invariants are the same as without: no acknowledged record is lost, and in the end every partition has a leader and a
    full ISR.
    """

    def level(self, broker: ModelBroker, index: int) -> None:
        raised = not self.controller.metadata.features.get(ELR_VERSION)
        update = FeatureUpdateKey(ELR_VERSION, int(raised), upgrade_type=1 if raised else 2)
        assert self.happen(FeatureChangeRequested(1, [update])) is None

    def crash(self, broker: ModelBroker, index: int) -> None:
        killed = list(self.brokers.values()) if self.random.random() < 0.3 else [broker]
        for each in killed:
            if each.running:
                each.crash(losing=False)

    def check_settled(self) -> None:
        super().check_settled()
        assert not self.losses, "what was acknowledged is lost"


def running(
    act: Callable[[ControllerHistory, ModelBroker, int], None],
) -> Callable[[ControllerHistory, ModelBroker, int], None]:
    """Wrap an action that only a running and registered broker performs."""

    def maybe(history: ControllerHistory, broker: ModelBroker, index: int) -> None:
        if broker.running and broker.epoch >= 0:
            act(history, broker, index)

    return maybe


def connected(
    act: Callable[[ControllerHistory, ModelBroker, int], None],
) -> Callable[[ControllerHistory, ModelBroker, int], None]:
    """Wrap an action that also needs a connection to the controller."""
    return running(lambda history, broker, index: act(history, broker, index) if broker.reachable else None)


STEPS: dict[str, Callable[[ControllerHistory, ModelBroker, int], None]] = {
    "beats": lambda history, broker, index: history.beat(broker) if broker.running and broker.reachable else None,
    "learns": connected(lambda history, broker, index: history.learn(broker, history.random.randint(1, 5))),
    "learns all": connected(lambda history, broker, index: history.learn(broker)),
    "proposes": connected(ControllerHistory.propose),
    "tells its directory": connected(ControllerHistory.report_directory),
    "is written to": running(ControllerHistory.write),
    "copies": running(ControllerHistory.copy),
    "forces": running(ControllerHistory.force),
    "starts": lambda history, broker, index: None if broker.running else history.start(broker),
    "crashes": lambda history, broker, index: history.crash(broker, index),
    "leaves": running(ControllerHistory.leave),
    "is cut off or not": ControllerHistory.cut,
    "moves": ControllerHistory.move,
    "is elected": ControllerHistory.elect,
    "commit": lambda history, broker, index: history.commit(),
    "time": lambda history, broker, index: history.wait(history.random.choice((0.5, 1.0, 3.0))),
    "another controller": lambda history, broker, index: history.fail_over(),
    "the calendar jumps": ControllerHistory.jump,
    "another level": lambda history, broker, index: history.level(broker, index),
}
WEIGHTS = {
    "beats": 20,
    "learns": 4,
    "learns all": 16,
    "proposes": 8,
    "tells its directory": 4,
    "is written to": 20,
    "copies": 25,
    "forces": 3,
    "starts": 6,
    "crashes": 1.5,
    "leaves": 1,
    "is cut off or not": 1,
    "moves": 1,
    "is elected": 1,
    "commit": 40,
    "time": 8,
    "another controller": 1,
    "the calendar jumps": 1,
    "another level": 3,
}
