"""A quorum of three or five under crashes, cuts of the network, stopped processes and departures, and what must hold
after every step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.state import State
from ottla.coordination.quorum.voter_changes import OwnEntry
from ottla.coordination.quorum.voters import ReplicaKey, VoterSet
from ottla.coordination.quorum.voters_record import Endpoint, VotersRecord
from ottla.errors import ErrorCode
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.protocol.schema import Message
from tests.simulation.quorum_log import Entry
from tests.simulation.quorum_node import CLUSTER, QuorumNode
from tests.simulation.world import World

LENGTH = 12.0
"""Seconds of trouble."""
PEACE = 15.0
"""Seconds in which all must be well again."""
STEP = 0.25
LONELY = 4.0
"""More than one and a half fetch timeouts, plus the longest delay of a message."""
SELF_ASSURED = 4
"""In one history of so many the nodes see to it themselves that they vote, and that it is known where they are."""


def presence_of(id_: int, port: int = 9093) -> OwnEntry:
    return OwnEntry((Endpoint("CONTROLLER", f"node-{id_}", port),), auto_join=True)


class QuorumHistory:
    """One seed, one history."""

    def __init__(self, seed: int, count: int | None = None, *, observed: bool | None = None) -> None:
        """So many voters, and perhaps one observer; other parameters are random."""
        self.world = World(seed)
        chance = self.world.chance
        keys = [ReplicaKey(id_, UUID(int=id_)) for id_ in range(1, (count or chance.choice((3, 3, 5))) + 1)]
        first = VoterSet.of(*keys)
        observed = chance.random() < 0.4 if observed is None else observed
        keys += [ReplicaKey(9, UUID(int=9))] if observed else []
        self.nodes = {key.id: QuorumNode(self, key, first) for key in keys}
        self.disks = 100
        if seed % SELF_ASSURED == 0:
            for node in self.nodes.values():
                node.own_entry = presence_of(node.id)
        self.nerves = chance.choice((0.0, 0.0, 0.6))
        """The probability that a new leader crashes at once."""
        self.most = chance.choice((1, 5))
        """Records in an answer."""
        self.loss = chance.choice((0.0, 0.02, 0.1))
        self.slow = chance.choice((0.01, 0.05, 0.3))
        self.cut: set[tuple[int, int]] = set()
        """Blocked links, as sender and receiver."""
        self.written = 0
        # what the auditor knows
        self.committed: list[Entry] = []
        self.committed_in: dict[int, int] = {}
        """The committed offset at the end of each epoch."""
        self.leaders: dict[int, int] = {}
        self.votes: dict[tuple[int, int], int] = {}
        self.epochs: dict[int, int] = {}
        self.watermarks: dict[tuple[int, int], int] = {}
        self.alone_since: dict[int, float] = {}

    # the network

    def tells_gone(self, number: int) -> bool:
        """True if the connection of that request breaks with an error that shows the end of the process."""
        return number % 2 == 0

    def reaches(self, one: int, other: int) -> bool:
        return (one, other) not in self.cut

    def ask(self, sender: QuorumNode, to: int, number: int, request: Message) -> None:
        """Send a request: late, lost, or twice. The connection to an absent node breaks."""
        incarnation = sender.incarnation
        if to not in self.nodes:
            self.world.after(
                0.01, lambda: sender.answered(to, number, None) if sender.incarnation == incarnation else None
            )
            return
        receiver = self.nodes[to]

        def answer(response: Message | None) -> None:
            if sender.incarnation == incarnation:
                self._carry(to, sender.id, lambda: sender.answered(to, number, response))

        def arrive() -> None:
            if receiver.raft is None:
                answer(None)
            else:
                receiver.asked(request, answer)

        self._carry(sender.id, to, arrive)

    def _carry(self, sender: int, receiver: int, arrive: Any) -> None:
        chance, node = self.world.chance, self.nodes[receiver]
        for _ in range(2 if chance.random() < self.loss / 2 else 1):
            if chance.random() >= self.loss and self.reaches(sender, receiver):
                at = chance.random() * self.slow
                if node.raft is None:
                    self.world.after(at, arrive)
                else:
                    node.later(at, lambda: arrive() if self.reaches(sender, receiver) else None)

    # clients

    def client(self) -> None:
        """Write to every node that considers itself the leader."""
        for node in self.nodes.values():
            if node.raft is not None and node.leads and self.world.now >= node.paused_until:
                self.written += 1
                node.append(Entry(node.raft.epoch, self.written))

    # changes of voters

    def change_voters(self) -> None:
        """Request another set of voters from the leader, or several in a row."""
        for _ in range(self.world.chance.choice((1, 1, 4))):
            self._change_voters()

    def _change_voters(self) -> None:
        leader = next((node for node in self.nodes.values() if node.leads), None)
        if leader is None or leader.raft is None or self.world.now < leader.paused_until:
            return
        voters = leader.raft.voters
        node = self.nodes[self.world.chance.choice(list(self.nodes))]
        request: Message
        if not voters.has(node.key) and node.id not in voters.ids:
            place = Listener("CONTROLLER", f"node-{node.id}", 9093)
            request = AddRaftVoterRequest(CLUSTER, 1000, node.id, node.key.directory_id, [place])
        elif not voters.has(node.key) or len(voters) > 3:
            request = RemoveRaftVoterRequest(CLUSTER, node.id, voters.voters[node.id].voter_directory_id)
        else:
            return
        leader.asked(request, lambda response: self._changed(node, request, response))

    def _changed(self, node: QuorumNode, request: Message, response: Any) -> None:
        wish = "vote" if isinstance(request, AddRaftVoterRequest) else "vote no more"
        self.world.say("somebody", "asks that node", node.id, wish, "→", ErrorCode(response.error_code).name)

    # trouble

    def trouble(self) -> None:
        """Cause a random fault."""
        chance = self.world.chance
        node = self.nodes[chance.choice(list(self.nodes))]
        leader = next((each for each in self.nodes.values() if each.leads), node)
        node = chance.choice((node, leader))
        what = chance.random()
        if what < 0.35:
            self._crash(node)
        elif what < 0.45 and node.raft is not None:
            node.leave()
            self._start_again(node, chance.choice((0.7, 2.0)))
        elif what < 0.6:
            self._cut_off(node)
        elif what < 0.75:
            other = chance.choice([id_ for id_ in self.nodes if id_ != node.id])
            self._cut({(node.id, other)} | ({(other, node.id)} if chance.random() < 0.6 else set()))
        elif what < 0.85:
            node.pause(chance.choice((0.5, 3.0, 5.0)))
        elif what < 0.92:
            node.snapshot()
        elif what < 0.96 and self._may_lose_its_disk(node):
            self._lose_disk(node)
        else:
            self.loss, self.slow = chance.choice((0.0, 0.1, 0.3)), chance.choice((0.01, 0.1, 0.5))

    def _crash(self, node: QuorumNode) -> None:
        if node.raft is not None:
            node.crash()
            self._start_again(node, self.world.chance.choice((0.1, 0.5, 3.0)))

    def _may_lose_its_disk(self, node: QuorumNode) -> bool:
        """True if the others are a majority with every committed record, and no voter has lost a disk before."""
        others = [other for other in self.nodes.values() if other is not node]
        have_all = all(other.raft is not None and self._holds(other, len(self.committed)) for other in others)
        keys = {each.key for each in self.nodes.values()}
        known = [each.raft.voters for each in self.nodes.values() if each.raft is not None]
        return (
            have_all and node.raft is not None and all(keys >= set(voters.keys) and len(voters) > 2 for voters in known)
        )

    def _lose_disk(self, node: QuorumNode) -> None:
        """The machine restarts with an empty disk: with its new directory it is another replica, which has not voted."""
        node.crash()
        self.disks += 1
        node.replace_disk(UUID(int=self.disks))
        self._start_again(node, 0.5)

    def _start_again(self, node: QuorumNode, span: float) -> None:
        self.world.after(span, lambda: node.start() if node.raft is None else None)

    def _cut_off(self, node: QuorumNode) -> None:
        others = [id_ for id_ in self.nodes if id_ != node.id]
        with_it = set(self.world.chance.sample(others, self.world.chance.choice((0, 0, len(others) // 2))))
        side = {node.id} | with_it
        rest = [id_ for id_ in others if id_ not in with_it]
        self._cut({(one, other) for one in side for other in rest} | {(one, other) for one in rest for other in side})

    def _cut(self, ways: set[tuple[int, int]]) -> None:
        self.world.say("network", "cuts", *sorted(ways))
        self.cut |= ways
        self.world.after(self.world.chance.choice((0.5, 2.5, 5.0)), lambda: self._mend(ways))

    def _mend(self, ways: set[tuple[int, int]]) -> None:
        self.world.say("network", "mends", *sorted(ways))
        self.cut -= ways

    # the play

    def transcript(self) -> str:
        return self.world.transcript()

    def run(self) -> None:
        for node in self.nodes.values():
            node.start()
        until = self.world.now + LENGTH
        while self.world.now < until:
            self._step()
            if self.world.likely(0.25):
                self.trouble()
            if self.world.likely(0.15):
                self.change_voters()
        self._heal()
        self._cut_one_link()

    def _step(self) -> None:
        self.world.run_until(self.world.now + STEP)
        self.client()
        self.check_logs()
        self.check_lonely()

    def _heal(self) -> None:
        """End all faults; then there must be a leader that commits records, and every node must get them."""
        self.loss, self.slow = 0.0, 0.01
        self.cut.clear()
        for node in self.nodes.values():
            node.paused_until = min(node.paused_until, self.world.now)
            self._start_again(node, 0.0)
        self.world.say("world", "is at peace")
        self.world.run_until(self.world.now + 5.5)  # paused nodes have caught up with their work
        before = len(self.committed)
        for _ in range(int(PEACE / STEP)):
            self._step()
            if len(self.committed) > before + 5 and self._agree():
                return
        assert len(self.committed) > before, "nothing is committed though all is well"
        raise AssertionError("not everybody has what is committed though all is well")

    def _agree(self) -> bool:
        rafts = [node.raft for node in self.nodes.values()]
        return any(node.leads for node in self.nodes.values()) and all(
            raft is not None and raft.high_watermark >= len(self.committed) - 3 for raft in rafts
        )

    def _cut_one_link(self) -> None:
        """Check that a voter that reaches the others but not the leader starts no election (KIP-996)."""
        self.world.run_until(self.world.now + 1.0)  # all have all, and any of them could be elected
        leader = next(node for node in self.nodes.values() if node.leads)
        assert leader.raft is not None
        epoch, voters = leader.raft.epoch, leader.raft.voters
        alive = [id_ for id_ in self.nodes if voters.has(self.nodes[id_].key)]
        if len(alive) <= len(voters) // 2 + 1 or leader.id not in alive:
            return  # every voter is needed for a majority
        other = next(id_ for id_ in alive if id_ != leader.id)
        self.world.say("network", "cuts the leader", leader.id, "and", other, "apart")
        self.cut = {(leader.id, other), (other, leader.id)}
        self.world.run_until(self.world.now + 6.0)
        self.cut.clear()
        self.world.run_until(self.world.now + 1.0)
        epochs = [node.raft.epoch for node in self.nodes.values() if node.raft is not None]
        assert set(epochs) == {epoch}, f"a node that most could do without has ended epoch {epoch}: {epochs}"

    # what must hold

    def check(self, node: QuorumNode, raft: Raft) -> None:
        """After every step of every node."""
        assert raft.epoch >= self.epochs.get(node.id, 0), f"node {node.id} goes back to epoch {raft.epoch}"
        self.epochs[node.id] = raft.epoch
        if raft.state is State.LEADER and raft.epoch not in self.leaders:
            self.leaders[raft.epoch] = node.id
            self._check_leader(node)
            if self.world.likely(self.nerves) and self.world.now < LENGTH:
                node.later(self.world.chance.random() * 0.2, lambda: self._crash(node))
        if raft.state is State.LEADER:
            assert self.leaders[raft.epoch] == node.id, f"two lead in epoch {raft.epoch}"

    def _check_leader(self, node: QuorumNode) -> None:
        """Check that a leader has every record committed in earlier epochs. It may pause while it wins, and a later
        epoch start.
        """
        assert node.raft is not None
        end = max((end for epoch, end in self.committed_in.items() if epoch < node.raft.epoch), default=0)
        log = node.log.whole(node.log.end)
        assert log[:end] == tuple(self.committed[:end]), f"node {node.id} leads and lacks what was committed"

    def voted(self, voter: int, epoch: int, candidate: int) -> None:
        before = self.votes.setdefault((voter, epoch), candidate)
        assert before == candidate, f"node {voter} votes for {before} and {candidate} in epoch {epoch}"

    def committed_at(self, node: QuorumNode, high_watermark: int) -> None:
        """A node takes everything below for committed."""
        run = (node.id, node.incarnation)
        assert high_watermark > self.watermarks.get(run, 0), "a high watermark goes back"
        before, self.watermarks[run] = self.watermarks.get(run, 0), high_watermark
        log = node.log
        assert high_watermark <= log.end, f"node {node.id} takes for committed what it does not have"
        for offset in range(max(before, log.start), min(high_watermark, len(self.committed))):
            assert log.at(offset) == self.committed[offset], f"what was committed at offset {offset} has changed"
        if high_watermark > len(self.committed):
            assert self._led(node), f"node {node.id} does not lead, and commits first"
            assert node.raft is not None
            self.committed = list(log.whole(high_watermark))
            self.committed_in[node.raft.epoch] = high_watermark
            self._check_majority(node, high_watermark)

    def _led(self, node: QuorumNode) -> bool:
        """True if it leads, or resigned just now, with the records of its last commit."""
        return node.raft is not None and self.leaders.get(node.raft.epoch) == node.id

    def _check_majority(self, leader: QuorumNode, end: int) -> None:
        """Check that committed records are on the disks of a majority of voters, running or not."""
        voters = leader.log.shape().voters
        holders = [node for node in self.nodes.values() if voters.has(node.key) and self._holds(node, end)]
        assert len(holders) >= voters.majority, f"offset {end - 1} is committed and on {len(holders)} disks"

    def _holds(self, node: QuorumNode, end: int) -> bool:
        last = node.log.at(end - 1)
        return node.log.start >= end or (node.log.flushed >= end and last == self.committed[end - 1])

    def check_logs(self) -> None:
        """Check that two logs with a record of one epoch at one offset are identical up to it."""
        logs = [node.log for node in self.nodes.values()]
        for number, one in enumerate(logs):
            for other in logs[number + 1 :]:
                first, end = max(one.start, other.start), min(one.end, other.end)
                while end > first and one.at(end - 1) != other.at(end - 1):
                    assert one.at(end - 1)[0] != other.at(end - 1)[0], f"two records in one epoch at {end - 1}"  # type: ignore[index]
                    end -= 1
                if end > first:
                    mine, theirs = (log.entries[first - log.start : end - log.start] for log in (one, other))
                    assert mine == theirs, "logs with a common record differ before it"

    def check_lonely(self) -> None:
        """Check that a node without a majority for some time does not lead (the quorum check)."""
        now = self.world.now
        for node in self.nodes.values():
            near = [id_ for id_ in self.nodes if self.reaches(id_, node.id) and self.nodes[id_].raft is not None]
            voters = node.log.shape().voters
            if node.paused_until > now - STEP or len([id_ for id_ in near if id_ in voters.ids]) >= voters.majority:
                self.alone_since.pop(node.id, None)
            elif now - self.alone_since.setdefault(node.id, now) > LONELY:
                assert not node.leads, f"node {node.id} leads and has not heard of most for {LONELY} s"

    def voters_in(self, entries: Iterable[Entry], otherwise: VoterSet) -> VoterSet:
        """Return the voters after the records."""
        found = otherwise
        for entry in entries:
            if isinstance(entry.value, VotersRecord):
                found = VoterSet(entry.value.voters)
        return found
