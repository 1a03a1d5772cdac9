"""Deterministic machines: told what happened, they say what is to be done.

event ──► decide(event, now) ──► Decision(records, replies, alarms)
                                    │
state ◄── replay(record) ◄──────────┘ once it is in the log

cluster/  topics, their partitions and configs, producer ids
offsets/  committed offsets of groups
"""
