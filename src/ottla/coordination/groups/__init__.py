"""The groups of one partition of `__consumer_offsets`: their members, assignments and committed offsets.

    shard ──► consumer/ ──► classic/ ──► events · config
      └─────────────────────────────────► ../offsets

`shard` is the state machine. It has groups of two kinds and passes each event to the kind of its group: `classic/`, in which a member
assigns the partitions, and `consumer/`, in which the coordinator does (KIP-848). A group may change its kind while its members
keep consuming, so `consumer/` depends on `classic/`, never the reverse.
"""
