"""Brokers register, beat, are fenced and let in again, stop, and what becomes of their partitions meanwhile."""

from __future__ import annotations

from itertools import permutations
from uuid import UUID

import pytest

from ottla.coordination.cluster.events import FeatureChangeRequested
from ottla.coordination.cluster.features import BROKER_LEVELS, INITIAL_CLUSTER_LEVELS
from ottla.coordination.cluster.node_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from ottla.coordination.cluster.records import (
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from ottla.coordination.cluster.topic import LOST
from ottla.coordination.controller.draft import BrokerFenced
from ottla.coordination.controller.events import BrokerProcessEnded, ControllerActivated
from ottla.errors import ErrorCode
from ottla.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    RequestDirectoryData,
    RequestPartitionData,
    RequestTopicData,
)
from ottla.protocol.messages.broker_registration import Feature
from ottla.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.protocol.messages.unregister_controller import UnregisterControllerRequest, UnregisterControllerResponse
from ottla.protocol.messages.update_features import FeatureUpdateKey
from tests.coordination.controller.cluster import TOPIC, Cluster, directory


def test_the_epoch_of_a_broker_is_the_offset_of_its_registration() -> None:
    cluster = Cluster()
    answer = cluster.register(1)
    assert (answer.error_code, answer.broker_epoch) == (0, 2)
    record = cluster.log[2]
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.broker_epoch, record.fenced, record.log_dirs) == (2, True, [directory(1)])


def test_a_broker_is_unfenced_after_it_has_replayed_its_registration() -> None:
    cluster = Cluster()
    cluster.register(1)
    behind = cluster.beat(1, offset=1)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    waiting = cluster.beat(1, want_fence=True)
    assert (waiting.is_caught_up, waiting.is_fenced) == (True, True)
    assert not cluster.beat(1).is_fenced
    written = len(cluster.log)
    assert not cluster.beat(1).is_fenced
    assert len(cluster.log) == written, "a heartbeat that changes nothing writes nothing"


def test_a_broker_of_another_cluster_is_rejected_with_both_cluster_ids() -> None:
    cluster = Cluster()
    assert cluster.register(1, cluster_id="d").error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert cluster.notes == ["broker 1 is rejected: it belongs to cluster 'd', this one is 'c'"]


def test_a_second_broker_with_the_same_id_is_rejected_while_the_session_of_the_first_is_valid() -> None:
    cluster = Cluster(1)
    assert cluster.register(1, start=2).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.wait(9.0)
    assert cluster.register(1, start=2).error_code == 0


def test_a_running_broker_that_registers_again_keeps_its_epoch() -> None:
    cluster = Cluster(1)
    epoch = cluster.epoch(1)
    assert cluster.register(1, rack="a").broker_epoch == epoch
    known = cluster.controller.metadata.registrations[1]
    assert (known.rack, known.fenced) == ("a", False)


def test_a_broker_with_a_directory_of_another_broker_is_rejected() -> None:
    cluster = Cluster(1)
    assert cluster.register(2, log_dirs=[directory(1)]).error_code == ErrorCode.INVALID_REGISTRATION
    assert f"directory {directory(1)} is broker 1's" in cluster.notes[-1]


@pytest.mark.parametrize("places", [[], [UUID(int=1)], [UUID(int=500)] * 2])
def test_ambiguous_directory_ids_are_rejected(places: list[UUID]) -> None:
    assert Cluster().register(1, log_dirs=places).error_code == ErrorCode.INVALID_REGISTRATION


def test_a_broker_without_a_feature_level_of_the_cluster_is_rejected_with_that_level() -> None:
    cluster = Cluster()
    assert (
        cluster.register(1, features=[Feature("metadata.version", 7, 33)]).error_code == ErrorCode.UNSUPPORTED_VERSION
    )
    assert "the cluster runs eligible.leader.replicas.version 1, and it can run 0 to 0" in cluster.notes[-1]
    assert (
        cluster.register(1, features=[Feature("metadata.version", 7, 29)]).error_code == ErrorCode.UNSUPPORTED_VERSION
    )
    nameless = Cluster(elr=False).register(1, features=[Feature("group.version", 0, 1)])
    assert nameless.error_code == ErrorCode.INVALID_REGISTRATION


def test_the_first_registration_error_in_kafkas_order_is_returned() -> None:
    cluster = Cluster(1)
    assert cluster.register(1, 2, cluster_id="d", log_dirs=[]).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert cluster.register(1, 2, log_dirs=[]).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert cluster.register(2, log_dirs=[], features=[]).error_code == ErrorCode.INVALID_REGISTRATION


def test_a_heartbeat_of_an_earlier_incarnation_is_ignored() -> None:
    cluster = Cluster(1)
    assert cluster.beat(1, epoch=1).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert cluster.beat(7).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_without_heartbeats_is_fenced_and_other_leaders_are_elected() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.topic((1, 2, 3), (2, 3, 1))
    cluster.wait(5)
    cluster.beat(2), cluster.beat(3)
    cluster.wait(4)
    assert (cluster.led(0), cluster.led(1)) == ((2, (2, 3)), (2, (2, 3)))
    assert (cluster.partition(0).leader_epoch, cluster.partition(1).leader_epoch) == (1, 0)
    assert cluster.controller.metadata.registrations[1].fenced
    assert cluster.notes == ["Broker 1 is fenced: it sent no heartbeat for 9 s."]


def test_a_broker_with_timely_heartbeats_is_never_fenced() -> None:
    cluster = Cluster(1)
    for _ in range(20):
        cluster.wait(8.9)
        assert not cluster.beat(1).is_fenced
    assert cluster.notes == []


def test_after_all_sessions_have_expired_the_last_isr_member_leads_again_when_it_returns() -> None:
    cluster = Cluster(1, 2, elr=False)
    cluster.topic((1, 2))
    cluster.wait(1)
    cluster.beat(2)
    cluster.wait(20)
    assert cluster.led() == (-1, (2,))
    cluster.beat(1)
    assert cluster.led() == (-1, (2,)), "who was not in sync last does not lead"
    cluster.beat(2)
    assert cluster.led() == (2, (2,))


def test_with_elr_any_isr_member_of_the_time_below_min_isr_can_be_elected() -> None:
    cluster = Cluster(1, 2, 3, min_isr=2)
    cluster.topic((1, 2, 3))
    cluster.wait(20)
    assert (cluster.led(), cluster.partition().elr) == ((-1, ()), (2, 3))
    cluster.beat(1)
    assert cluster.led() == (-1, ()), "two were still in sync without it"
    cluster.beat(3)
    assert (cluster.led(), cluster.partition().elr) == ((3, (3,)), (2,))


def test_a_broker_that_lost_power_is_not_elected_from_the_elr() -> None:
    cluster = Cluster(1, 2, min_isr=2)
    cluster.topic((1, 2))
    cluster.wait(20)
    assert cluster.partition().elr == (1, 2)
    cluster.join(1, start=2, previous_broker_epoch=-1)
    assert (cluster.led(), cluster.partition().elr) == ((-1, ()), (2,))
    cluster.join(2, start=2, previous_broker_epoch=cluster.epoch(2))
    assert cluster.led() == (2, (2,)), "this one was stopped cleanly, and has all"


def test_a_controlled_shutdown_moves_leaders_and_ends_when_the_others_have_replayed_that() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2), (2, 1))
    leaving = cluster.beat(1, want_shut_down=True)
    assert (leaving.should_shut_down, leaving.is_fenced) == (False, False)
    assert (cluster.led(0), cluster.led(1)) == ((2, (2,)), (2, (2,)))
    assert not cluster.beat(1, want_shut_down=True).should_shut_down, "broker 2 has not heard of it yet"
    cluster.beat(2)
    gone = cluster.beat(1, want_shut_down=True)
    assert (gone.should_shut_down, gone.is_fenced) == (True, True)


def test_a_broker_without_leaderships_may_stop_and_register_again_at_once() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((2, 1))
    epoch = cluster.epoch(1)
    assert cluster.beat(1, want_shut_down=True).should_shut_down
    assert cluster.led() == (2, (2,))
    assert cluster.register(1, start=2, previous_broker_epoch=epoch).error_code == 0


def test_the_broker_of_the_only_replica_may_stop_and_the_partition_has_no_leader() -> None:
    cluster = Cluster(1, elr=False)
    cluster.topic((1,))
    cluster.stop_cleanly(1)
    assert cluster.led() == (-1, (1,))


def test_a_controlled_shutdown_continues_under_the_next_controller() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2))
    cluster.beat(1, want_shut_down=True)
    cluster.fail_over()
    cluster.stop_cleanly(1)
    assert cluster.led() == (2, (2,))
    assert cluster.controller.metadata.registrations[1].fenced


def test_a_new_controller_gives_every_broker_a_fresh_session() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2))
    cluster.wait(8)
    cluster.fail_over()
    cluster.wait(8)
    assert cluster.led() == (1, (1, 2))
    cluster.beat(2)
    cluster.wait(1)
    assert cluster.led() == (2, (2,))


def test_a_broker_whose_process_has_ended_is_fenced_at_once_and_may_register_again_at_once() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.topic((1, 2, 3))
    epoch = cluster.controller.metadata.registrations[1].epoch
    cluster.happen(BrokerProcessEnded(1, epoch - 1))
    assert cluster.led() == (1, (1, 2, 3)), "that was an earlier one"
    cluster.happen(BrokerProcessEnded(1, epoch))
    assert cluster.led() == (2, (2, 3))
    assert cluster.notes == ["Broker 1 is fenced: its process has ended."]
    assert isinstance(cluster.notes[0], BrokerFenced)  # and is logged as a warning
    cluster.happen(BrokerProcessEnded(1, epoch))
    cluster.happen(BrokerProcessEnded(7, 0))
    assert cluster.register(1, start=2).error_code == 0
    assert len(cluster.notes) == 1


def test_a_new_controller_lists_the_brokers_without_a_heartbeat() -> None:
    cluster = Cluster(1, 2)
    assert cluster.controller.brokers_without_heartbeat() == []
    cluster.fail_over()
    assert [each.broker_id for each in cluster.controller.brokers_without_heartbeat()] == [1, 2]
    cluster.beat(2)
    assert [each.broker_id for each in cluster.controller.brokers_without_heartbeat()] == [1]


def test_a_broker_registered_before_a_snapshot_is_unfenced_by_the_controller_that_loaded_it() -> None:
    cluster = Cluster()
    cluster.register(1)
    cluster.fail_over()
    assert cluster.beat(1, offset=1).is_fenced
    assert not cluster.beat(1).is_fenced


def test_an_unregistered_broker_is_in_no_isr_and_is_not_elected() -> None:
    cluster = Cluster(1, 2, min_isr=2)
    cluster.topic((1, 2))
    answer = cluster.ask(UnregisterBrokerRequest(1), UnregisterBrokerResponse)
    assert answer.error_code == 0
    assert (cluster.led(), cluster.partition().elr) == ((2, (2,)), ())
    assert list(cluster.controller.metadata.registrations) == [2]
    again = cluster.ask(UnregisterBrokerRequest(1), UnregisterBrokerResponse)
    assert again.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert again.error_message == "no broker 1 is registered"


def test_replicas_in_a_lost_directory_get_other_leaders_and_the_broker_stays_unfenced() -> None:
    cluster = Cluster(2)
    places = [directory(1), UUID(int=501)]
    cluster.join(1, log_dirs=places)
    cluster.topic((1, 2))
    assert not cluster.beat(1, offline_log_dirs=[directory(1)]).is_fenced
    assert cluster.led() == (2, (2,))
    assert cluster.controller.metadata.registrations[1].log_dirs == (UUID(int=501),)
    written = len(cluster.log)
    cluster.beat(1, offline_log_dirs=[directory(1)])
    assert len(cluster.log) == written


def test_a_broker_that_registers_without_a_directory_is_not_elected_for_its_replicas() -> None:
    cluster = Cluster(1, elr=False)
    cluster.topic((1,))
    cluster.wait(20)
    cluster.beat(1, offline_log_dirs=[directory(1)])
    assert cluster.led() == (-1, (1,))


def test_cordoned_directories_are_written_once() -> None:
    cluster = Cluster(1)
    cluster.beat(1, cordoned_log_dirs=[directory(1)])
    assert cluster.log[-1] == BrokerRegistrationChangeRecord(1, cluster.epoch(1), cordoned_log_dirs=[directory(1)])
    written = len(cluster.log)
    cluster.beat(1, cordoned_log_dirs=[directory(1)])
    assert len(cluster.log) == written


def test_a_controller_registers_its_endpoints() -> None:
    cluster = Cluster()
    levels = [Feature(name, *levels) for name, levels in BROKER_LEVELS.items()]
    request = ControllerRegistrationRequest(9, UUID(int=9), features=levels)
    answer = cluster.ask(request, ControllerRegistrationResponse)
    assert answer.error_code == 0
    assert cluster.controller.metadata.controllers[9].incarnation_id == UUID(int=9)


def test_an_unregistered_controller_no_longer_counts_for_the_levels_of_the_cluster() -> None:
    cluster = Cluster()
    cluster.write([RegisterControllerRecord(9, UUID(int=9), features=[ControllerFeature("group.version", 0, 0)])])
    assert cluster.ask(UnregisterControllerRequest(9), UnregisterControllerResponse).error_code == 0
    assert cluster.log[-1] == UnregisterControllerRecord(9)
    assert cluster.happen(FeatureChangeRequested(1, [FeatureUpdateKey("group.version", 1)])) is None
    again = cluster.ask(UnregisterControllerRequest(9), UnregisterControllerResponse)
    assert again.error_code == ErrorCode.CONTROLLER_ID_NOT_REGISTERED
    assert again.error_message == "no controller 9 is registered"


def test_the_active_controller_and_older_clusters_keep_their_registrations() -> None:
    cluster = Cluster()
    own = cluster.ask(UnregisterControllerRequest(1), UnregisterControllerResponse)
    assert own.error_code == ErrorCode.INVALID_REQUEST
    assert "stop it, so that another takes over" in (own.error_message or "")
    cluster.write([RegisterControllerRecord(9, UUID(int=9)), FeatureLevelRecord("metadata.version", 32)])
    old = cluster.ask(UnregisterControllerRequest(9), UnregisterControllerResponse)
    assert old.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "since metadata.version 33, and the cluster is at 32: raise it first" in (old.error_message or "")
    assert list(cluster.controller.metadata.controllers) == [9]


def test_a_controller_without_a_feature_level_of_the_cluster_is_not_registered() -> None:
    cluster = Cluster()
    request = ControllerRegistrationRequest(9, UUID(int=9), features=[Feature("metadata.version", 7, 17)])
    answer = cluster.ask(request, ControllerRegistrationResponse)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "and it can run 7 to 17" in (answer.error_message or "")
    assert not cluster.controller.metadata.controllers


def test_a_level_that_a_controller_does_not_support_is_rejected() -> None:
    cluster = Cluster()
    cluster.write([RegisterControllerRecord(9, UUID(int=9), features=[ControllerFeature("group.version", 0, 0)])])
    refusal = cluster.happen(FeatureChangeRequested(1, [FeatureUpdateKey("group.version", 1)]))
    assert "group.version 1 is more than controller 9 can run, which knows 0 to 0" in str(refusal)


def test_only_the_first_controller_of_a_cluster_writes_the_feature_levels() -> None:
    cluster = Cluster.empty()
    cluster.fail_over()
    assert cluster.controller.metadata.features == INITIAL_CLUSTER_LEVELS
    written = len(cluster.log)
    cluster.fail_over()
    assert len(cluster.log) == written


def test_a_transaction_left_open_by_another_controller_is_aborted() -> None:
    cluster = Cluster(1)
    cluster.write([BeginTransactionRecord(), UnregisterBrokerRecord(1, cluster.epoch(1))])
    cluster.happen(ControllerActivated())
    assert isinstance(cluster.log[-1], AbortTransactionRecord)
    assert list(cluster.controller.metadata.registrations) == [1]


@pytest.mark.behaviour("B5")
@pytest.mark.parametrize("leader", [1, 2, 3])
@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
def test_after_an_emptied_disk_another_of_three_killed_brokers_leads_in_any_order_of_return(
    order: tuple[int, ...], leader: int
) -> None:
    others = [each for each in (1, 2, 3) if each != leader]
    for emptied in (1, 2, 3):
        cluster = Cluster(1, 2, 3, min_isr=2)
        cluster.topic((leader, *others))
        cluster.fail_over()
        cluster.wait(20)
        for broker in order:
            new = {"log_dirs": [UUID(int=300)]} if broker == emptied else {}
            assert not cluster.register(broker, 2, **new).error_code
            cluster.beat(broker)
            assert cluster.led()[0] != emptied or broker != emptied
        for broker in order:
            cluster.beat(broker)
        found, in_sync = cluster.led()
        assert found in {1, 2, 3} - {emptied}
        assert emptied not in in_sync


@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
def test_a_leader_that_reports_a_lost_directory_is_replaced_by_a_complete_replica_if_there_is_one(
    order: tuple[int, ...],
) -> None:
    cluster = Cluster(1, 2, 3, min_isr=2)
    cluster.topic((1, 2, 3))
    cluster.fail_over()
    cluster.wait(20)
    for broker in order:
        assert not cluster.register(broker, 2).error_code
        cluster.beat(broker)
    for broker in order:
        cluster.beat(broker)
    first = cluster.led()[0]
    report_directory(cluster, first, LOST)
    second, in_sync = cluster.led()
    assert second not in (first, -1)
    assert in_sync == (second,)
    report_directory(cluster, second, LOST)
    assert cluster.led()[0] == -1
    report_directory(cluster, second, directory(second))
    assert cluster.led()[0] == second


def report_directory(cluster: Cluster, broker: int, place: UUID) -> None:
    """Report the directory of the broker's replica."""
    reported = RequestDirectoryData(place, [RequestTopicData(TOPIC, [RequestPartitionData(0)])])
    answer = cluster.ask(
        AssignReplicasToDirsRequest(broker, cluster.epoch(broker), [reported]), AssignReplicasToDirsResponse
    )
    assert not answer.error_code


def test_the_only_replica_leads_again_after_its_directory_is_lost() -> None:
    cluster = Cluster(1)
    cluster.topic((1,))
    cluster.wait(20)
    cluster.join(1, 2, log_dirs=[UUID(int=300)])
    assert cluster.led()[0] == -1
    reported = RequestDirectoryData(UUID(int=300), [RequestTopicData(TOPIC, [RequestPartitionData(0)])])
    cluster.ask(AssignReplicasToDirsRequest(1, cluster.epoch(1), [reported]), AssignReplicasToDirsResponse)
    assert cluster.led() == (1, (1,))


def test_an_unclean_election_restarts_a_partition_all_of_whose_directories_are_lost() -> None:
    cluster = Cluster(1, 2, min_isr=2)
    cluster.topic((1, 2))
    cluster.wait(20)
    for broker in (1, 2):
        cluster.join(broker, 2, log_dirs=[UUID(int=300 + broker)])
    assert cluster.led()[0] == -1
    asked = ElectLeadersRequest(1, [TopicPartitions("t", [0])])
    answer = cluster.ask(asked, ElectLeadersResponse)
    assert [each.error_code for each in answer.replica_election_results[0].partition_result] == [0]
    assert cluster.led() == (1, (1,))


DISKS = [directory(2), directory(3)]


@pytest.mark.parametrize(("min_isr", "leads"), [(2, 3), (1, -1)])
def test_an_elected_leader_that_loses_its_disk_is_replaced_by_the_next_complete_replica(
    min_isr: int, leads: int
) -> None:
    """With min.insync.replicas 1 the elected leader may have acknowledged records that no other replica has."""
    cluster = Cluster(1, 2, 3, min_isr=min_isr)
    cluster.write([TopicRecord("t", TOPIC), PartitionRecord(0, TOPIC, [2, 3], [], leader=-1, directories=DISKS)])
    cluster.write([PartitionChangeRecord(0, TOPIC, last_known_elr=[2, 3])])
    cluster.wait(20)
    for broker in (2, 3):
        assert not cluster.register(broker, start=2).error_code
    cluster.beat(2)
    assert (cluster.led(), cluster.partition().leader_recovery_state) == ((2, (2,)), 1)
    cluster.wait(20)
    assert not cluster.register(2, start=3, log_dirs=[UUID(int=301)]).error_code
    cluster.beat(3)
    assert cluster.partition().leader == leads
