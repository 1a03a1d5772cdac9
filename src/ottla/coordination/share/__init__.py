"""Share groups (KIP-932): consumers that acquire single records of a partition, and acknowledge each of them.

    member ──ShareFetch, ShareAcknowledge──► leader of the partition ──Write, ReadShareGroupState──► share coordinator
      │                                      SharePartition                                          ShareState
      └──ShareGroupHeartbeat──► group coordinator ──InitializeShareGroupState, Delete──────────────────▲
                                ottla.coordination.groups.share

`SharePartition` assigns records to members and decides when a record is finished. `ShareState` persists these decisions
in the partitions of `__share_group_state`: it knows nothing of members and locks. The group coordinator decides which
members read which partitions, and for which of them a state exists.
"""
