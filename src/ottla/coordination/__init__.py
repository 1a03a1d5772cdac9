"""Deterministic machines: told what happened, they say what is to be done.

event ──► decide(event, now) ──► Decision(records, replies, alarms)
                                    │
state ◄── replay(record) ◄──────────┘ once it is in the log

cluster/       topics, their partitions and configs, producer ids
groups/        groups of consumers: members, assignments, and who may commit
offsets/       what groups committed
replication/   copies of a partition: who has what, who is in sync, what is committed
transactions/  transactional ids and what they have open
machine, serde what all of them are, and how their records stand in a log
"""
