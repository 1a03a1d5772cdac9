"""Valid and invalid values for each argument of each client method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from ottla import NewTopic, OffsetAndMetadata, TopicPartition
from ottla.client.admin import (
    AbortTransactionSpec,
    AclBinding,
    AclBindingFilter,
    ClientQuotaEntity,
    ConfigResource,
    FeatureUpdate,
    NewPartitions,
    RaftVoterEndpoint,
    TopicPartitionReplica,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata

Wrong = tuple[Any, ...]
New: Any = NewTopic
Offset: Any = OffsetAndMetadata
Spec: Any = AbortTransactionSpec
T0 = TopicPartition("t", 0)
TABLE = pa.table({"value": ["a"]})
TOPICS: Wrong = (None, 5, b"t", "", "x" * 40_000, "\ud800", ["t"], object())
LISTS: Wrong = (None, 5, "t", b"t", [None], [5], [b"t"], ["\ud800"], ["x" * 40_000])
PARTITIONS: Wrong = (
    None,
    5,
    "t",
    ("t",),
    ("t", -1),
    ("t", "0"),
    (5, 0),
    ("t", None),
    ("t", 2**40),
    ("t", 1.5),
    ("", 0),
    True,
)
MANY: Wrong = (None, 5, "t", T0, [None], [5], ["t"], [("t", -1)], [("t", None)], [("t", "0")])
SECONDS: Wrong = ("1", -1, float("nan"), [], b"1", True)
COLUMNS: Wrong = (5, "value", b"value", [5], ["no"], [], ["value", "value"])
FLAGS: Wrong = ("yes", None, 5)
FUNCTIONS: Wrong = (5, "x", [])
OFFSETS: Wrong = (
    *(5, "x", [T0], {"t": 5}, {("t", -1): 5}, {T0: "5"}, {T0: -1}, {T0: 2**70}, {T0: True}, {T0: None}, {T0: 1.5}),
    *({T0: Offset(offset, *rest)} for offset, *rest in [("x",), (5, None), (5, "", "x"), (5, "", -2)]),
)
TIMES: Wrong = (None, 5, "x", [T0], {"t": 5}, {T0: "5"}, {T0: 2**70}, {T0: True}, {T0: None}, {T0: 1.5}, {T0: -99})
GROUPS: Wrong = (None, 5, b"g", "x" * 40_000, "\ud800", ["g"], object())
BYTES: Wrong = ("5", -2, 1.5, [], 2**70, True)
Endpoint: Any = RaftVoterEndpoint
Copy: Any = TopicPartitionReplica
Level: Any = FeatureUpdate
COPY = Copy("t", 0, 1)
DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAQ"
VOTERS: Wrong = ("1", None, -1, 1.5, [], True, 2**40)
DIRECTORIES: Wrong = (None, 5, b"x", "", "short", DIRECTORY * 2)
ENDPOINTS: Wrong = (None, 5, "x", [], [5], [("a", "b", 1)], [Endpoint("a", "b", "1")], [Endpoint("a", 5, 1)])
PRINCIPALS: Wrong = (5, "bob", ":bob", "User:", b"User:bob", [])
SPANS: Wrong = ("5", 1.5, None, 2**70, [], -2)
HMACS: Wrong = (None, 5, "x", b"", [])
FEATURES: Wrong = (
    *(None, 5, "x", {}, ["a"], {"share.version": "1"}, {"share.version": None}, {"share.version": -1}, {5: 1}),
    *({"share.version": Level(*words)} for words in [("1",), (1, "up"), (1, None), (2**40,)]),
    {"no.such.feature": 1},
)
NEW_TOPICS: Wrong = (
    *(None, 5, "t", New("t"), ["t"], [None], [New("")], [New("n", -5)], [New("n", 0)]),
    *([New(*words)] for words in [(None,), ("n", "1"), ("n", 1, "1"), ("n", 1, 5), ("n", 1, -1, {5: "5"})]),
    *([New("n", 2**40)], [New("n", 1, -1, 5)], [New("n", 1, -1, {}, {0: 5})]),
)
Rule: Any = AclBinding
Filter: Any = AclBindingFilter
RULE = Rule("topic", "t", "User:a", "read")
RULES: Wrong = (
    *(Rule("topc", "t", "User:a", "read"), Rule("topic", 5, "User:a", "read"), Rule("topic", "t", None, "read")),
    *(
        Rule("topic", "t", "User:a", "reed"),
        Rule("topic", "t", "User:a", "read", "maybe"),
        Rule(5, "t", "User:a", "read"),
    ),
    *(Rule("topic", "t", "User:a", "read", "allow", "prefix"), Rule("topic", "t", "User:a", "read", host=7)),
)
FILTERS: Wrong = (Filter("topc"), Filter("topic", 5), Filter(operation="reed"), Filter(5), Filter(host=7))
USER = ClientQuotaEntity(user="a")
FLIGHTS = ConfigResource("topic", "t")
RESOURCES: Wrong = (None, 5, "x", [None], ["t"], [("x", "t")], [("topic", 5)], [(None, "t")], [([], "t")])


Growing: Any = NewPartitions
NEW_PARTITIONS: Wrong = (
    *(None, 5, "t", ["t"], {5: 2}, {"": 2}, {"t": "2"}, {"t": 2**40}, {"t": None}, {"t": 1.5}, {"t": 0}, {"nope": 2}),
    *({"t": Growing(*words)} for words in [("2",), (2, 5), (2, [1]), (2, [["1"]]), (2, [[77]])]),
)
Upsertion: Any = UserScramCredentialUpsertion
Deletion: Any = UserScramCredentialDeletion
ALTERATIONS: Wrong = (
    *(None, 5, "a", ["a"], [None], Deletion("a"), [Deletion(5)], [Deletion("a", "PLAIN")], [Deletion("a", 5)]),
    *(
        [Upsertion(*words)]
        for words in [("a", 5), ("a", ""), ("a", "p", "PLAIN"), (5, "p"), ("a", "p", "SCRAM-SHA-256", "5")]
    ),
    *([Upsertion("a", "p", "SCRAM-SHA-256", 3)], [Upsertion("a", "p", "SCRAM-SHA-256", 4096, "salt")]),
)


class Argument(NamedTuple):
    """Return the arguments of a method."""

    right: Any
    wrong: Wrong


TIMEOUT = Argument(None, SECONDS)
TOPIC = Argument("t", TOPICS)
Methods = Mapping[str, Mapping[str, Argument]]

CAPACITY = Argument(10, ("5", -1, 0, 1.5, None, [], True))
PRODUCER: Methods = {
    "send": {
        "topic": TOPIC,
        "value": Argument(b"", (5, "x", [], 1.5)),
        "key": Argument(None, (5, "x", [])),
        "partition": Argument(None, ("0", -1, 1.5, 2**40, [], True)),
        "timestamp": Argument(None, ("0", -1, 1.5, 2**70, [], True)),
        "headers": Argument(
            None, (5, "x", [5], [("a",)], [("a", "b")], [(5, b"")], {"a": 5}, [None], [("\ud800", b"")])
        ),
        "on_delivery": Argument(None, FUNCTIONS),
    },
    "send_table": {
        "topic": TOPIC,
        "table": Argument(
            TABLE, (None, 5, "x", {"value": ["a"]}, [TABLE], pa.table({"x": [1]}), pa.table({"value": [1]}))
        ),
        "key": Argument("key", (5, "no", b"key", [])),
        "value": Argument("value", (5, "no", [])),
        "headers": Argument(None, (5, "no", "value")),
        "timestamp": Argument(None, (5, "no", "value")),
        "partition": Argument(None, (5, "no", "value", [])),
        "value_format": Argument(None, (5, "xml", [])),
        "key_format": Argument(None, (5, "xml", [])),
        "registry": Argument(None, (5, "http://127.0.0.1:1", [])),
        "value_schema": Argument(None, (5, '"long"', [])),
        "key_schema": Argument(None, (5, '"long"', [])),
    },
    "send_many": {
        "topic": TOPIC,
        "values": Argument([b""], (None, 5, "abc", b"abc", [5], ["x"])),
        "keys": Argument(None, (5, "k", b"k", [b"a", b"b"], [5], ["x"])),
    },
    "partitions_for": {"topic": TOPIC},
    "client_instance_id": {"timeout": TIMEOUT},
    "flush": {"timeout": TIMEOUT},
    "init_transactions": {"timeout": TIMEOUT},
    "begin_transaction": {},
    "send_offsets_to_transaction": {
        "offsets": Argument({T0: 0}, (None, *OFFSETS)),
        "group_metadata": Argument(ConsumerGroupMetadata("g"), (None, 5, "x")),
        "timeout": TIMEOUT,
    },
    "commit_transaction": {"timeout": TIMEOUT},
    "abort_transaction": {"timeout": TIMEOUT},
    "hand_over_transaction": {},
    "take_over_transaction": {"given": Argument(None, (None, 5, "x"))},
    "transaction": {},
    "close": {"timeout": TIMEOUT},
    "metrics": {},
    "snapshot": {},
    "trace": {"capacity": CAPACITY},
}
CONSUMER: Methods = {
    "assign": {"partitions": Argument([T0], MANY)},
    "assignment": {},
    "beginning_offsets": {"partitions": Argument([T0], MANY), "timeout": TIMEOUT},
    "bound": {"ends": Argument({T0: None}, (None, 5, "x", [T0], {"t": 5}, *({T0: n} for n in ("5", -5, 2**70, True))))},
    "client_instance_id": {"timeout": TIMEOUT},
    "close": {"timeout": TIMEOUT},
    "commit": {"offsets": Argument(None, OFFSETS), "timeout": TIMEOUT},
    "commit_async": {"offsets": Argument(None, OFFSETS), "callback": Argument(None, FUNCTIONS)},
    "committed": {"partitions": Argument([T0], MANY), "timeout": TIMEOUT},
    "current_lag": {"partition": Argument(T0, PARTITIONS)},
    "end_offsets": {"partitions": Argument([T0], MANY), "timeout": TIMEOUT},
    "enforce_rebalance": {"reason": Argument(None, (5, b"x", [], object()))},
    "group_metadata": {},
    "metrics": {},
    "offsets_for_times": {"timestamps": Argument({T0: 1}, TIMES), "timeout": TIMEOUT},
    "partitions_for": {"topic": TOPIC, "timeout": TIMEOUT},
    "pause": {"*partitions": Argument(T0, PARTITIONS)},
    "paused": {},
    "poll": {"timeout": Argument(0, (None, *SECONDS))},
    "poll_arrow": {
        "timeout": Argument(0, (None, *SECONDS)),
        "max_bytes": Argument(None, BYTES),
        "include_headers": Argument(False, FLAGS),
        "columns": Argument(None, COLUMNS),
        "value_format": Argument(None, (5, "xml", [])),
        "key_format": Argument(None, (5, "xml", [])),
        "registry": Argument(None, (5, "http://127.0.0.1:1", [])),
        "value_schema": Argument(None, (5, '"long"', [])),
        "key_schema": Argument(None, (5, '"long"', [])),
        "decode_errors": Argument("raise", (None, 5, "ignore")),
    },
    "poll_columns": {
        "timeout": Argument(0, (None, *SECONDS)),
        "max_bytes": Argument(None, BYTES),
        "include_headers": Argument(False, FLAGS),
        "columns": Argument(None, COLUMNS),
    },
    "position": {"partition": Argument(T0, PARTITIONS), "timeout": TIMEOUT},
    "resume": {"*partitions": Argument(T0, PARTITIONS)},
    "seek": {
        "partition": Argument(T0, PARTITIONS),
        "offset": Argument(0, ("0", -1, 1.5, None, 2**70, True, [], Offset("x"), Offset(-1))),
    },
    "seek_to_beginning": {"*partitions": Argument(T0, PARTITIONS)},
    "seek_to_end": {"*partitions": Argument(T0, PARTITIONS)},
    "snapshot": {},
    "subscribe": {
        "topics": Argument(["t"], (*LISTS, [""], ["^a.*"])),
        "listener": Argument(None, (5, "x", object())),
        "on_assigned": Argument(None, FUNCTIONS),
        "on_revoked": Argument(None, FUNCTIONS),
        "on_lost": Argument(None, FUNCTIONS),
    },
    "subscription": {},
    "topic_id": {"topic": TOPIC},
    "topics": {"timeout": TIMEOUT},
    "trace": {"capacity": CAPACITY},
    "unsubscribe": {},
    "wakeup": {},
}
ADMIN: Methods = {
    "metrics": {},
    "abort_transaction": {
        "spec": Argument(
            Spec(T0, 1, 0, 0),
            (
                None,
                5,
                "x",
                *(Spec(T0, *ids) for ids in [("1", 0, 0), (-1, 0, 0), (1, 2**15, 0), (1, 0, "")]),
            ),
        ),
        "timeout": TIMEOUT,
    },
    "alter_client_quotas": {
        "changes": Argument({}, (None, 5, "x", [USER], {"t": {}}, {USER: 5}, {USER: {5: 5}}, {USER: {"x": "5"}})),
        "timeout": TIMEOUT,
        "validate_only": Argument(False, FLAGS),
    },
    "alter_partition_reassignments": {
        "reassignments": Argument(
            {T0: [1]}, (None, 5, "x", [T0], {"t": [1]}, {T0: 5}, {T0: "1"}, {T0: ["1"]}, {T0: [-1]}, {T0: [2**40]})
        ),
        "timeout": TIMEOUT,
        "allow_replication_factor_change": Argument(True, FLAGS),
    },
    "alter_user_scram_credentials": {"alterations": Argument([], ALTERATIONS), "timeout": TIMEOUT},
    "alter_configs": {
        "changes": Argument({}, (None, 5, "x", [FLIGHTS], {"t": {}}, {FLIGHTS: 5}, {FLIGHTS: {5: 5}}, {FLIGHTS: None})),
        "timeout": TIMEOUT,
        "validate_only": Argument(False, FLAGS),
    },
    "alter_consumer_group_offsets": {
        "group_id": Argument("g", GROUPS),
        "offsets": Argument({}, (None, *OFFSETS)),
        "timeout": TIMEOUT,
    },
    "close": {"timeout": TIMEOUT},
    "create_acls": {
        "acls": Argument([], (None, 5, "x", RULE, ["t"], [None], *([one] for one in RULES))),
        "timeout": TIMEOUT,
    },
    "create_topics": {
        "topics": Argument([], NEW_TOPICS),
        "timeout": TIMEOUT,
        "validate_only": Argument(False, FLAGS),
    },
    "delete_acls": {
        "filters": Argument([], (None, 5, "x", RULE, ["t"], [None], [RULE], *([one] for one in FILTERS))),
        "timeout": TIMEOUT,
    },
    "delete_consumer_group_offsets": {
        "group_id": Argument("g", GROUPS),
        "partitions": Argument([], MANY),
        "timeout": TIMEOUT,
    },
    "alter_share_group_offsets": {
        "group_id": Argument("g", GROUPS),
        "offsets": Argument({}, (None, 5, "x", ["t"], {"t": 1}, {T0: "1"}, {T0: None}, {T0: -1}, {T0: 2**70})),
        "timeout": TIMEOUT,
    },
    "delete_share_group_offsets": {
        "group_id": Argument("g", GROUPS),
        "topics": Argument([], LISTS),
        "timeout": TIMEOUT,
    },
    "delete_share_groups": {"group_ids": Argument([], LISTS), "timeout": TIMEOUT},
    "describe_share_groups": {
        "group_ids": Argument([], LISTS),
        "timeout": TIMEOUT,
        "include_authorized_operations": Argument(False, FLAGS),
    },
    "list_streams_group_offsets": {
        "group_id": Argument("g", GROUPS),
        "partitions": Argument(None, MANY[1:]),
        "timeout": TIMEOUT,
        "require_stable": Argument(False, FLAGS),
    },
    "alter_streams_group_offsets": {
        "group_id": Argument("g", GROUPS),
        "offsets": Argument({}, (None, *OFFSETS)),
        "timeout": TIMEOUT,
    },
    "delete_streams_group_offsets": {
        "group_id": Argument("g", GROUPS),
        "partitions": Argument([], MANY),
        "timeout": TIMEOUT,
    },
    "delete_streams_groups": {"group_ids": Argument([], LISTS), "timeout": TIMEOUT},
    "describe_streams_groups": {
        "group_ids": Argument([], LISTS),
        "timeout": TIMEOUT,
        "include_authorized_operations": Argument(False, FLAGS),
        "include_topology_description": Argument(False, FLAGS),
    },
    "list_share_group_offsets": {
        "group_id": Argument("g", GROUPS),
        "partitions": Argument(None, MANY[1:]),
        "timeout": TIMEOUT,
    },
    "delete_consumer_groups": {"group_ids": Argument([], LISTS), "timeout": TIMEOUT},
    "delete_topics": {"names": Argument([], (*LISTS, [""], ["not-there"])), "timeout": TIMEOUT},
    "describe_acls": {"filter": Argument(Filter(), (None, 5, "x", RULE, *FILTERS)), "timeout": TIMEOUT},
    "describe_client_quotas": {"entity": Argument(None, (5, "x", {}, [USER])), "timeout": TIMEOUT},
    "describe_configs": {"resources": Argument([], RESOURCES), "timeout": TIMEOUT},
    "describe_consumer_groups": {
        "group_ids": Argument([], LISTS),
        "timeout": TIMEOUT,
        "include_authorized_operations": Argument(False, FLAGS),
    },
    "describe_classic_groups": {
        "group_ids": Argument([], LISTS),
        "timeout": TIMEOUT,
        "include_authorized_operations": Argument(False, FLAGS),
    },
    "create_partitions": {
        "new_partitions": Argument({}, NEW_PARTITIONS),
        "timeout": TIMEOUT,
        "validate_only": Argument(False, FLAGS),
    },
    "delete_records": {
        "before_offsets": Argument({T0: 0}, (*TIMES[:-1], {T0: -2}, {T0: 77})),
        "timeout": TIMEOUT,
    },
    "add_raft_voter": {
        "voter_id": Argument(9, VOTERS),
        "voter_directory_id": Argument(DIRECTORY, DIRECTORIES),
        "endpoints": Argument([Endpoint("CONTROLLER", "127.0.0.1", 9093)], ENDPOINTS),
        "timeout": TIMEOUT,
    },
    "alter_replica_log_dirs": {
        "replica_assignment": Argument(
            {}, (None, 5, "x", [COPY], {"t": "/d"}, {T0: "/d"}, {COPY: 5}, {COPY: None}, {COPY: "/no"})
        ),
        "timeout": TIMEOUT,
    },
    "create_delegation_token": {
        "owner": Argument(None, PRINCIPALS),
        "renewers": Argument((), (None, 5, "User:bob", [5], ["bob"], [None])),
        "max_lifetime_ms": Argument(-1, SPANS),
        "timeout": TIMEOUT,
    },
    "describe_cluster": {
        "timeout": TIMEOUT,
        "include_authorized_operations": Argument(False, FLAGS),
        "include_fenced_brokers": Argument(False, FLAGS),
    },
    "describe_delegation_token": {
        "owners": Argument(None, (5, "User:bob", [5], ["bob"], [None])),
        "timeout": TIMEOUT,
    },
    "describe_features": {"timeout": TIMEOUT},
    "describe_metadata_quorum": {"timeout": TIMEOUT},
    "describe_replica_log_dirs": {
        "replicas": Argument([], (None, 5, COPY, "t", [T0], [None], [Copy("t", -1, 1)], [Copy("t", 0, 77)])),
        "timeout": TIMEOUT,
    },
    "expire_delegation_token": {
        "hmac": Argument(b"x", HMACS),
        "expiry_time_period_ms": Argument(-1, SPANS),
        "timeout": TIMEOUT,
    },
    "force_terminate_transaction": {"transactional_id": Argument("ended", (None, 5, b"x", [], "")), "timeout": TIMEOUT},
    "fence_producers": {"transactional_ids": Argument([], LISTS), "timeout": TIMEOUT},
    "remove_members_from_consumer_group": {
        "group_id": Argument("g", GROUPS),
        "group_instance_ids": Argument(["reader"], (*LISTS[1:], [], ["nobody"])),
        "timeout": TIMEOUT,
    },
    "remove_raft_voter": {
        "voter_id": Argument(9, VOTERS),
        "voter_directory_id": Argument(DIRECTORY, DIRECTORIES),
        "timeout": TIMEOUT,
    },
    "renew_delegation_token": {
        "hmac": Argument(b"x", HMACS),
        "renew_time_period_ms": Argument(-1, SPANS),
        "timeout": TIMEOUT,
    },
    "unregister_broker": {"broker_id": Argument(77, ("1", None, -1, 1.5, [], 78, True, 2**40)), "timeout": TIMEOUT},
    "unregister_controller": {
        "controller_id": Argument(77, ("1", None, -1, 1.5, [], 78, True, 2**40)),
        "timeout": TIMEOUT,
    },
    "update_features": {
        "updates": Argument({"share.version": 0}, FEATURES),
        "timeout": TIMEOUT,
        "validate_only": Argument(True, FLAGS),
    },
    "describe_log_dirs": {
        "broker_ids": Argument(None, (5, "1", ["1"], [None], [-1], [1.5], [77], [True])),
        "timeout": TIMEOUT,
    },
    "describe_user_scram_credentials": {
        "users": Argument(None, (*LISTS[1:], ["nobody"])),
        "timeout": TIMEOUT,
    },
    "elect_leaders": {
        "election_type": Argument("PREFERRED", (None, 5, "preferred", b"PREFERRED", [])),
        "partitions": Argument(None, MANY[1:]),
        "timeout": TIMEOUT,
    },
    "list_partition_reassignments": {"partitions": Argument(None, MANY[1:]), "timeout": TIMEOUT},
    "describe_producers": {
        "partitions": Argument([T0], MANY),
        "broker_id": Argument(None, ("1", -1, 1.5, [], 77, True)),
        "timeout": TIMEOUT,
    },
    "describe_topics": {
        "names": Argument(None, (*LISTS[1:], [""], ["not-there"])),
        "timeout": TIMEOUT,
        "include_authorized_operations": Argument(False, FLAGS),
    },
    "describe_transactions": {"transactional_ids": Argument([], LISTS), "timeout": TIMEOUT},
    "list_config_resources": {
        "kinds": Argument((), (None, 5, "topic", [5], ["no"], [[]])),
        "timeout": TIMEOUT,
    },
    "list_consumer_group_offsets": {
        "group_id": Argument("g", GROUPS),
        "partitions": Argument(None, MANY[1:]),
        "timeout": TIMEOUT,
        "require_stable": Argument(False, FLAGS),
    },
    "list_groups": {
        "states": Argument((), (None, 5, "Stable", [5])),
        "types": Argument((), (None, 5, "classic", [5])),
        "protocol_types": Argument((), (None, 5, "consumer", [5])),
        "timeout": TIMEOUT,
    },
    "list_consumer_groups": {
        "states": Argument((), (None, 5, "Stable", [5])),
        "types": Argument((), (None, 5, "classic", [5])),
        "timeout": TIMEOUT,
    },
    "list_offsets": {"timestamps": Argument({T0: 1}, TIMES), "timeout": TIMEOUT},
    "client_instance_id": {"timeout": TIMEOUT},
    "list_topics": {"timeout": TIMEOUT, "internal": Argument(False, FLAGS)},
    "list_transactions": {
        "states": Argument((), (None, 5, "Ongoing", [5], ["no"])),
        "producer_ids": Argument((), (None, 5, "5", ["x"], [2**70])),
        "longer_than_ms": Argument(-1, ("5", 1.5, None, 2**70, [], -2)),
        "transactional_id_pattern": Argument(None, (5, b"x", "(", [])),
        "timeout": TIMEOUT,
    },
}


class Call(NamedTuple):
    """Yield calls of a method with one invalid argument."""

    method: str
    argument: str

    def __str__(self) -> str:
        return f"{self.method}({self.argument})"


def calls(methods: Methods) -> list[Call]:
    """One for each argument."""
    return [Call(method, argument) for method, arguments in methods.items() for argument in arguments]


def made(methods: Methods, call: Call | str, wrong: Any = None) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call, with a wrong one if it is not only a method's name."""
    method, bad = call if isinstance(call, Call) else (call, None)
    given = {name: wrong if name == bad else argument.right for name, argument in methods[method].items()}
    many = [given.pop(name) for name in list(given) if name.startswith("*")]
    return many, given
