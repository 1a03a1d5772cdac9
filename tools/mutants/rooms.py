"""The modules that are mutated, and the tests that must detect it.

A room is what decides or encodes: no sockets, no threads, no waiting. Its tests are quick, and the same in every run.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src"


class Room(NamedTuple):
    """Modules and tests that belong together."""

    modules: tuple[str, ...]
    """Patterns below `src/ottla`."""
    tests: tuple[str, ...]
    """Files and folders below `tests`."""


class Module(NamedTuple):
    """One file below `src/ottla`."""

    name: str
    room: str
    lines: range | None = None
    """Limits the mutated modules to these, if given."""

    @property
    def path(self) -> Path:
        return SOURCE / "ottla" / self.name


ROOMS: dict[str, Room] = {
    "protocol": Room(
        (
            "protocol/acl.py",
            "protocol/apis.py",
            "protocol/codec.py",
            "protocol/plan.py",
            "protocol/schema.py",
        ),
        (
            "protocol/test_acl.py",
            "protocol/test_codec.py",
            "protocol/test_consumer_protocol.py",
            "protocol/test_conversation.py",
            "protocol/test_damage.py",
            "protocol/test_facts.py",
            "protocol/test_kio.py",
            "protocol/test_plan.py",
        ),
    ),
    "protocol/frames": Room(
        ("protocol/conversation.py", "protocol/errors.py", "protocol/headers.py", "protocol/sentences.py"),
        ("protocol/test_conversation.py",),
    ),
    "records": Room(("records/*.py",), ("records",)),
    "coordination/cluster": Room(
        ("coordination/machine.py", "coordination/serde.py", "coordination/cluster/*.py"),
        (
            "coordination/access",
            "coordination/test_cluster_image.py",
            "coordination/test_cluster_metadata.py",
            "coordination/test_config_change.py",
            "coordination/test_elections.py",
            "coordination/test_features.py",
            "coordination/test_group_configs.py",
            "coordination/test_hosted_partitions.py",
            "coordination/test_passwords.py",
            "coordination/test_recorded_metadata.py",
            "coordination/test_records.py",
            "coordination/test_topic_configs.py",
        ),
    ),
    "coordination/controller": Room(("coordination/controller/*.py",), ("coordination/controller",)),
    "coordination/lifecycle": Room(("coordination/lifecycle/*.py",), ("coordination/lifecycle",)),
    "coordination/quorum": Room(
        ("coordination/quorum/*.py",),
        (
            "coordination/quorum",
            "simulation/test_found.py",
            "simulation/test_quorum_stories.py",
        ),
    ),
    "coordination/quotas": Room(("coordination/quotas/*.py",), ("coordination/quotas",)),
    "coordination/replication": Room(("coordination/replication/*.py",), ("coordination/replication",)),
    "coordination/telemetry": Room(("coordination/telemetry/*.py",), ("coordination/telemetry",)),
    "coordination/transactions": Room(
        ("coordination/transactions/*.py",),
        (
            "coordination/test_transactions.py",
            "coordination/test_transaction_changes.py",
            "coordination/test_records.py",
        ),
    ),
    "coordination/groups": Room(
        ("coordination/groups/*.py", "coordination/groups/classic/*.py", "coordination/offsets/*.py"),
        ("coordination/groups", "coordination/test_offsets.py", "coordination/test_records.py"),
    ),
    "coordination/groups/consumer": Room(
        ("coordination/groups/consumer/*.py",), ("coordination/groups/consumer", "coordination/groups")
    ),
    "coordination/groups/share": Room(
        ("coordination/groups/share/*.py",), ("coordination/groups/share", "coordination/test_group_records.py")
    ),
    "coordination/share": Room(
        ("coordination/share/*.py",), ("coordination/share", "coordination/test_group_records.py")
    ),
    "storage": Room(
        (
            "storage/segments/retention.py",
            "storage/validation/record_check.py",
            "storage/cleaning/record_filter.py",
            "storage/cleaning/batch_cleaner.py",
            "storage/batches/scan.py",
            "storage/cleaning/cleaning_plan.py",
            "storage/indexes/index_file.py",
            "storage/indexes/index_set.py",
            "storage/cleaning/key_map.py",
            "storage/log_config.py",
            "storage/indexes/offset_index.py",
            "storage/producers/producer_entry.py",
            "storage/producers/producer_snapshot.py",
            "storage/producers/producer_state.py",
            "storage/segments/segment_list.py",
            "storage/indexes/time_index.py",
            "storage/indexes/transaction_index.py",
        ),
        # Not those that kill processes, nor the long histories: what a mistake breaks shows in the short ones.
        (
            "storage/test_compaction.py",
            "storage/test_compaction_transactions.py",
            "storage/test_index_file.py",
            "storage/test_indexes.py",
            "storage/test_key_map.py",
            "storage/test_log.py",
            "storage/test_producer_snapshot.py",
            "storage/test_producer_state.py",
            "storage/test_record_check.py",
            "storage/test_recovery.py",
            "storage/test_retention.py",
            "storage/test_rolling.py",
            "storage/test_timestamps.py",
        ),
    ),
    "storage/log": Room(
        (
            "storage/log/append_path.py",
            "storage/log/log.py",
            "storage/leader_epochs.py",
        ),
        (
            "storage/test_appending.py",
            "storage/test_following.py",
            "storage/test_high_watermark.py",
            "storage/test_log.py",
            "storage/test_rolling.py",
            "storage/test_truncation.py",
            "storage/test_whole_appends.py",
        ),
    ),
    "storage/recovery": Room(
        (
            "storage/producers/snapshot_keeper.py",
            "storage/recovery/*.py",
            "storage/segments/log_start.py",
            "storage/segments/gaps.py",
            "storage/segments/known_ranges.py",
            "storage/segments/segment.py",
            "storage/segments/segment_end.py",
        ),
        (
            "storage/test_log_start.py",
            "storage/test_cleaned_transactions.py",
            "storage/test_compaction_transactions.py",
            "storage/test_epoch_check.py",
            "storage/test_flipped_bits.py",
            "storage/test_gaps.py",
            "storage/test_high_watermark.py",
            "storage/test_damaged_offsets.py",
            "storage/test_lost_end.py",
            "storage/test_lost_markers.py",
            "storage/test_lost_offsets.py",
            "storage/test_damaged_markers.py",
            "storage/test_producer_snapshot.py",
            "storage/test_recovery.py",
            "storage/test_repair.py",
            "storage/test_restart_cost.py",
            "storage/test_segment_end.py",
            "storage/test_tail.py",
            "storage/test_torn_middle.py",
            "storage/test_verified_files.py",
            "storage/test_verified_transactions.py",
        ),
    ),
    "storage/succession": Room(
        ("storage/segments/succession.py",),
        ("storage/test_missing_segments.py", "storage/test_shortened_segments.py"),
    ),
    "settings": Room(("settings_class.py",), ("config/test_settings_class.py", "config/test_read_settings.py")),
    "uncollected": Room(("uncollected.py",), ("test_uncollected.py",)),
    "client/producer": Room(
        (
            "client/producer/partitioner.py",
            "client/producer/buffer_pool.py",
            "client/producer/in_flight_batches.py",
            "client/producer/producer_batch.py",
            "client/producer/producer_sequences.py",
            "client/producer/record_accumulator.py",
            "client/producer/sender.py",
            "client/producer/transactions/*.py",
            "client/producer/txn_partition_entry.py",
            "client/producer/unobserved_failures.py",
        ),
        (
            "client/producer/test_buffer_pool.py",
            "client/producer/test_forms.py",
            "client/producer/test_in_flight_batches.py",
            "client/producer/test_partitioner.py",
            "client/producer/test_producer_batch.py",
            "client/producer/test_producer_sequences.py",
            "client/producer/test_record_accumulator.py",
            "client/producer/test_sender.py",
            "client/producer/test_sender_end.py",
            "client/producer/test_transaction_machine.py",
            "client/producer/test_transaction_transcripts.py",
            "client/producer/test_transaction_state.py",
            "client/producer/test_txn_partition_entry.py",
            "client/producer/test_unobserved_failures.py",
        ),
    ),
    "client/consumer/assignors": Room(("client/consumer/assignors/*.py",), ("client/consumer/assignors",)),
    "client/consumer/group": Room(
        ("client/consumer/group/membership/*.py", "client/consumer/group/heartbeat.py"),
        (
            "client/consumer/group/test_classic_membership.py",
            "client/consumer/group/test_consumer_membership.py",
            "client/consumer/group/test_heartbeat.py",
        ),
    ),
    "client/consumer": Room(
        (
            "client/runtime/backoff.py",
            "client/network/connection_states.py",
            "client/consumer/fetching/completed_fetch.py",
            "client/consumer/fetching/fetch_session_handler.py",
            "client/consumer/fetching/fetcher.py",
            "client/consumer/fetching/position_validator.py",
            "client/consumer/fetching/read_replicas.py",
            "client/consumer/group/reconciliation.py",
            "client/consumer/subscription_state.py",
        ),
        (
            "client/runtime/test_backoff.py",
            "client/network/test_connection_states.py",
            "client/consumer/fetching/test_completed_fetch.py",
            "client/consumer/group/test_consumer_membership.py",
            "client/consumer/fetching/test_fetch_session_handler.py",
            "client/consumer/fetching/test_fetcher.py",
            "client/consumer/fetching/test_read_replicas.py",
            "client/consumer/test_subscription_state.py",
        ),
    ),
}


def modules_of(name: str) -> list[Module]:
    """The modules of a room."""
    house = SOURCE / "ottla"
    found = {str(path.relative_to(house)) for pattern in ROOMS[name].modules for path in house.glob(pattern)}
    return [Module(each, name) for each in sorted(found) if not each.endswith("__init__.py")]


def chosen(words: Iterable[str]) -> list[Module]:
    """The modules that `words` name, by their beginning or whole; all where there are none."""
    known = [module for room in ROOMS for module in modules_of(room)]
    picked: list[Module] = []
    for word in words or [""]:
        begin, _, lines = word.removeprefix("src/").removeprefix("ottla/").partition(":")
        found = [module._replace(lines=lines_of(lines)) for module in known if module.name.startswith(begin)]
        if not found:
            raise SystemExit(f"no module of the pure rooms begins with {begin!r}; the rooms are {', '.join(ROOMS)}")
        picked += [module for module in found if module not in picked]
    return picked


def lines_of(text: str) -> range | None:
    """`29` or `29-30`, or nothing for the whole module."""
    if not text:
        return None
    try:
        first, _, last = text.partition("-")
        return range(int(first), int(last or first) + 1)
    except ValueError:
        raise SystemExit(f"{text!r} is not a line or a range of lines, such as 29 or 29-30") from None
