"""Deterministic machines: told what happened, they say what is to be done.

event ──► decide(event, now) ──► Decision(records, replies, alarms)
                                    │
state ◄── replay(record) ◄──────────┘ once it is in the log

cluster/  topics, their partitions and configs, producer ids
groups/   consumer groups: members, generations, assignments
offsets/  what groups committed
"""
