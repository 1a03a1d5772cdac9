"""What becomes of a partition: every change that a controller makes of one is decided here (KIP-455, KIP-966). Pure.

Whoever wants something says who should be in sync, or who should copy, or which election is due; the rest follows. In this order: a move
that can end ends; who fell out of sync while too few are left may still lead (`elr`); a leader is sought among those in sync, or, where
nobody is, among those who may still lead. What comes out is a record of what is different, or nothing.

A leader has its epoch for itself: it grows with each new leader, and where a copy is taken away, so that who has lost it cannot go on
with what it was told before. The partition's epoch grows with every record.

Five things differ from Kafka's: who is taken away by a move that ends may not still lead, nor may the others where the leader that was
elected is enough in sync by itself, a partition that never had a leader has no last known one, last known (`last_known_elr`) is also who
had everything when its process was killed, so that somebody is left where the disk of the last leader is lost (0106), and who may lead where
nobody is in sync is not forgotten because the feature is switched off.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct, field

from ottla.coordination.cluster.records import NO_LEADER, SAME_LEADER, PartitionChangeRecord
from ottla.coordination.cluster.topic import ANY_DIRECTORY, PartitionState
from ottla.coordination.controller.reassignment import Copies, completed, copies_of, without

RECOVERED, RECOVERING = 0, 1
"""`leader_recovery_state`: a leader that was elected without being in sync recovers, until it says that it has."""
NO_CHANGE = -1


class Election(Enum):
    """How a leader is sought."""

    ONLINE = "online"
    """The one that leads, while it may; else the first replica in sync."""
    PREFERRED = "preferred"
    """The first of the replicas, if it is in sync."""
    UNCLEAN = "unclean"
    """As online, and rather any replica that lives than none: records may be lost."""


class Wanted(Struct, frozen=True):
    """What is wanted of a partition; None is as it is."""

    election: Election = Election.ONLINE
    isr: tuple[int, ...] | None = None
    copies: Copies | None = None
    """A move that begins or is given up; `isr` stands above who is in sync there."""
    leader_recovery_state: int | None = None
    lost: Collection[int] = ()
    """Brokers that were stopped without forcing their logs to the disk: what they have is not to be relied on."""
    gone: Collection[int] = ()
    """Those of them that have come without the directory in which the copy was, or say that it is lost: they are nobody's heirs."""
    directories: Mapping[int, UUID] = field(default_factory=dict)
    """Where replicas lie, by broker, which are said to lie elsewhere."""


class Rules(NamedTuple):
    """What counts where the partition is."""

    may_lead: Callable[[int], bool]
    """Whether a broker is there, and the directory in which its copy lies."""
    min_isr: int
    elr: bool
    """Whether copies that fell out of sync as the last ones may lead (`eligible.leader.replicas.version`)."""
    new_directory: Callable[[int], UUID] = lambda broker: ANY_DIRECTORY
    """Where a copy will lie that comes to a broker."""


class Elected(NamedTuple):
    """Who leads, and whether that may lose records."""

    leader: int
    unclean: bool = False


def partition_change(
    topic_id: UUID, state: PartitionState, wanted: Wanted, rules: Rules
) -> PartitionChangeRecord | None:
    """What is different afterwards; None where nothing is."""
    copies = completed(aimed(state, wanted))
    elr = still_eligible(state, copies, wanted, rules)
    heirs = heirs_of(state, copies, wanted, rules)
    elected = elect(state, copies, elr, heirs, wanted.election, rules)
    if elected.unclean or elected.leader in elr:
        copies = copies._replace(isr=(elected.leader,))
    if elected.unclean or len(copies.isr) >= (rules.min_isr if rules.elr else 1):
        elr = ()  # From now on records are acknowledged that nobody else has.
    if not copies.isr and not rules.elr:
        copies = copies._replace(isr=state.isr)  # Who was in sync last is all that is known of who may lead.
    leader = named_leader(state, copies, elected)
    directories = directories_of(state, copies, wanted, rules)
    record = PartitionChangeRecord(
        state.index,
        topic_id,
        isr=other(copies.isr, state.isr),
        leader=leader,
        replicas=other(copies.replicas, state.replicas),
        removing_replicas=other(copies.removing, state.removing_replicas),
        adding_replicas=other(copies.adding, state.adding_replicas),
        leader_recovery_state=recovery(state, wanted, elected.unclean),
        directories=None if directories == state.directories else directories,
        eligible_leader_replicas=other(without(elr, copies.isr), state.elr),
        last_known_elr=last_known(state, copies, elr, heirs, elected, rules),
    )
    return None if record == PartitionChangeRecord(state.index, topic_id) else record


def aimed(state: PartitionState, wanted: Wanted) -> Copies:
    """Who should copy it, before anything follows from that."""
    copies = copies_of(state) if wanted.copies is None else wanted.copies
    return copies if wanted.isr is None else copies._replace(isr=wanted.isr)


def still_eligible(state: PartitionState, copies: Copies, wanted: Wanted, rules: Rules) -> tuple[int, ...]:
    """Who is not in sync any more, and has all that was acknowledged since too few are: nothing was acknowledged."""
    if not rules.elr:  # Where the level was lowered while nobody was in sync, nobody else is known.
        return () if state.isr else without([each for each in state.elr if each in copies.replicas], copies.isr)
    candidates = (set(state.elr) | set(state.isr)) & set(copies.replicas)
    return without(sorted(candidates), {*copies.isr, *wanted.lost})


def heirs_of(state: PartitionState, copies: Copies, wanted: Wanted, rules: Rules) -> tuple[int, ...]:
    """Who leads where nobody is left that is sure to have everything: the first of these.

    That is the last leader, as in Kafka. Where its copy is gone for good, it is who had everything when it was killed since too few are
    in sync: nothing was acknowledged without it.
    """
    if len(copies.isr) >= (rules.min_isr if rules.elr else 1) or (state.isr and not rules.elr):
        return ()
    last = (state.leader,) if rules.elr and not copies.isr and state.leader != NO_LEADER else ()
    killed = (each for each in (*state.isr, *state.elr) if rules.elr and each in wanted.lost)
    known = dict.fromkeys((*last, *state.last_known_elr, *killed))
    return without([each for each in known if each in copies.replicas], {*copies.isr, *wanted.gone})


def elect(
    state: PartitionState,
    copies: Copies,
    elr: tuple[int, ...],
    heirs: tuple[int, ...],
    election: Election,
    rules: Rules,
) -> Elected:
    """Who leads from now on; the one that leads, if it still may and no other is preferred."""
    able = [each for each in copies.replicas if each in (copies.isr or elr) and rules.may_lead(each)]
    if election is Election.PREFERRED and copies.replicas[0] in able:
        return Elected(copies.replicas[0])
    if state.leader in able:
        return Elected(state.leader)
    if able:
        return Elected(able[0])
    return elect_with_loss(copies, elr, heirs, election, rules)


def elect_with_loss(
    copies: Copies, elr: tuple[int, ...], heirs: tuple[int, ...], election: Election, rules: Rules
) -> Elected:
    """Who leads where nobody is there that is sure to have everything: the heir, or whoever lives if that is allowed."""
    candidates = list(heirs[:1]) if not elr and not copies.isr else []
    if election is Election.UNCLEAN:
        candidates += copies.replicas
    living = next(filter(rules.may_lead, candidates), None)
    return Elected(NO_LEADER) if living is None else Elected(living, True)


def named_leader(state: PartitionState, copies: Copies, elected: Elected) -> int:
    """The leader that the record names, which begins an epoch of it."""
    begins = elected.unclean or elected.leader != state.leader or not set(state.replicas) <= set(copies.replicas)
    return elected.leader if begins else SAME_LEADER


def recovery(state: PartitionState, wanted: Wanted, unclean: bool) -> int:
    """What the record says of the leader's recovery."""
    told = state.leader_recovery_state if wanted.leader_recovery_state is None else wanted.leader_recovery_state
    after = RECOVERING if unclean else told
    return NO_CHANGE if after == state.leader_recovery_state else after


def last_known(
    state: PartitionState,
    copies: Copies,
    elr: tuple[int, ...],
    heirs: tuple[int, ...],
    elected: Elected,
    rules: Rules,
) -> tuple[int, ...] | None:
    """The heirs, for as long as they may be needed; None where that is known."""
    if elected.unclean and (not rules.elr or len(copies.isr) >= rules.min_isr):
        heirs = ()  # From now on it is what the one has that was elected.
    elif elected.unclean:
        heirs = without(heirs, copies.isr)  # It acknowledges nothing by itself: they have as much as it has.
    elif elected.leader != NO_LEADER:
        heirs = without(heirs, {*copies.isr, *elr})
    return other(heirs, state.last_known_elr)


def directories_of(state: PartitionState, copies: Copies, wanted: Wanted, rules: Rules) -> tuple[UUID, ...]:
    """Where the replicas lie, in their order."""
    known = {**dict(zip(state.replicas, state.directories, strict=True)), **wanted.directories}
    return tuple(known[each] if each in known else rules.new_directory(each) for each in copies.replicas)


def other(value: tuple[int, ...], present: tuple[int, ...]) -> tuple[int, ...] | None:
    return None if value == present else value
