"""The groups of one partition of `__consumer_offsets`: who is a member, who reads what, and how far they got.

    shard ──► consumer/ ──► classic/ ──► events · config
      └─────────────────────────────────► ../offsets

`shard` is the machine. It holds groups of two kinds and hands each event to the kind that its group is of: `classic/`,
whose members share the partitions out themselves, and `consumer/`, for which the coordinator does it (KIP-848). A group
may change its kind while its members go on reading, so `consumer/` knows `classic/`, and never the other way round.
"""
