"""Methods of other clients for Python, and what to call here in their place.

A program that was written for confluent-kafka, kafka-python or aiokafka meets an AttributeError at such a name. Its text
names the remedy. Each name is a descriptor on the class, so that attributes that exist cost what they did without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

BEGINS_ITSELF = "a client begins by itself; use it in a with statement (async with in ottla.aio)"
CLOSE = "call close(), or use a with statement (async with in ottla.aio)"
LOGIN = "logins are settings: sasl.mechanism, sasl.username, sasl.password"
LIST_TOPICS = "call Admin.list_topics() for all topics"
CLUSTER = "call Admin.describe_cluster()"

PRODUCER: Mapping[str, str] = {
    "produce": "call send(topic, value, key=…, on_delivery=…)",
    "produce_batch": "call send_many(topic, values, keys=…), or send_table(topic, table)",
    "poll": "callbacks run by themselves, on the producer's own thread; there is nothing to poll",
    "purge": "call close(timeout=0), which gives up what is queued, or abort_transaction()",
    "list_topics": f"call partitions_for(topic) for one topic; {LIST_TOPICS}",
    "send_and_wait": "call send(…).result(), in asyncio: await (await producer.send(…))",
    "create_batch": "call send_many(topic, values, keys=…): it makes the batches",
    "send_batch": "call send_many(topic, values, keys=…), or send_table(topic, table)",
    "start": BEGINS_ITSELF,
    "stop": CLOSE,
    "cluster_id": CLUSTER,
    "bootstrap_connected": "call partitions_for(topic), which raises if no broker answers",
    "max_usable_produce_magic": "records have the format of Kafka 0.11 and later",
    "set_sasl_credentials": LOGIN,
}
CONSUMER: Mapping[str, str] = {
    "consume": "call poll(timeout), which returns up to max.poll.records records, or iterate over the consumer",
    "getone": "iterate over the consumer (async for in ottla.aio), or call poll(timeout) with max.poll.records=1",
    "getmany": "call poll(timeout); its result has records(partition) and partitions()",
    "store_offsets": "commit(offsets) with enable.auto.commit=false says what was processed",
    "list_topics": f"call topics() or partitions_for(topic); {LIST_TOPICS}",
    "partitions_for_topic": "call partitions_for(topic)",
    "get_watermark_offsets": "call beginning_offsets([partition]) and end_offsets([partition])",
    "highwater": "call end_offsets([partition]), or current_lag(partition)",
    "last_stable_offset": "call end_offsets([partition]) with isolation.level=read_committed",
    "last_poll_timestamp": "read metrics(), where last-poll-seconds-ago is",
    "seek_to_committed": "call seek(partition, committed([partition])[partition])",
    "incremental_assign": "call assign([*assignment(), partition]); those that stay keep their positions",
    "incremental_unassign": "call assign(partitions) with those that stay; they keep their positions",
    "unassign": "call assign([]), or unsubscribe()",
    "memberid": "read group_metadata().member_id",
    "consumer_group_metadata": "call group_metadata()",
    "start": BEGINS_ITSELF,
    "stop": CLOSE,
    "cluster_id": CLUSTER,
    "bootstrap": BEGINS_ITSELF,
    "bootstrap_connected": "call topics(), which raises if no broker answers",
    "set_sasl_credentials": LOGIN,
}
SHARE_CONSUMER: Mapping[str, str] = {
    "commit_sync": "call commit(), which returns the result of each partition",
    "seek": "a share group has no positions; reset its start offsets with Admin.alter_share_group_offsets()",
    "assign": "call subscribe(topics); the broker assigns the partitions of a share group",
    "assignment": "all members share the partitions; see Admin.describe_share_groups()",
    "start": BEGINS_ITSELF,
    "stop": CLOSE,
    "set_sasl_credentials": LOGIN,
}
ADMIN: Mapping[str, str] = {
    "incremental_alter_configs": "call alter_configs(…), which changes what it names and nothing else (KIP-339)",
    "reset_configs": "call alter_configs(…) with None for a setting: it gets its default",
    "alter_group_offsets": "call alter_consumer_group_offsets(group, offsets)",
    "reset_group_offsets": "call alter_consumer_group_offsets(group, offsets), or ottla groups reset-offsets",
    "delete_group_offsets": "call delete_consumer_group_offsets(group, partitions)",
    "list_group_offsets": "call list_consumer_group_offsets(group)",
    "delete_groups": "call delete_consumer_groups(groups)",
    "describe_groups": "call describe_consumer_groups(groups), or describe_classic_groups(groups)",
    "remove_group_members": "call remove_members_from_consumer_group(group, members)",
    "describe_topic_partitions": "call describe_topics(topics)",
    "list_partition_offsets": "call list_offsets(partitions)",
    "find_coordinator": "read the coordinator in describe_consumer_groups([group])",
    "find_hanging_transactions": "call list_transactions(), or ottla transactions find-hanging",
    "wait_for_topics": "call describe_topics(topics), which raises while one does not exist",
    "api_versions": "call describe_features()",
    "get_broker_version_data": "call describe_features()",
    "cluster_id": "call describe_cluster()",
    "poll": "each call waits for its answer; there is nothing to poll",
    "start": BEGINS_ITSELF,
    "set_sasl_credentials": LOGIN,
}


class OtherName:
    """A name that a class does not have: an AttributeError that says what to call."""

    __slots__ = ("_name", "_remedy")

    def __init__(self, name: str, remedy: str) -> None:
        self._name = name
        self._remedy = remedy

    def __get__(self, client: Any, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}: {self._remedy}")


def explain_names(client: type, remedies: Mapping[str, str]) -> None:
    """Have a client's class explain the methods of other clients that it does not have."""
    for name, remedy in remedies.items():
        assert not hasattr(client, name), f"{client.__name__} has {name}"
        setattr(client, name, OtherName(name, remedy))
