"""The pure state machines of the broker and the controller: events in, decisions out, without clock, network or disk.

event ──► decide(event, now) ──► Decision(records, replies, alarms)
                                    │
state ◄── replay(record) ◄──────────┘ once it is in the log

access/        ACLs and the authorizer
cluster/       the metadata of the cluster, and the validation of changes
controller/    the decisions of the active controller
groups/        the group coordinator: classic, consumer, share and streams groups
lifecycle/     the registration, heartbeats and shutdown of a broker
offsets/       committed offsets
quorum/        the Raft quorum of the metadata log
quotas/        client quotas and throttling
replication/   the leader and the followers of a partition, the ISR and the high watermark
share/         share partitions and the share coordinator
telemetry/     client metrics subscriptions
transactions/  the transaction coordinator
machine        the interface of all state machines
serde          the format of coordinators' records
"""
