"""Replication of a partition: a leader, its followers, and the in-sync set.

follower ── FetchFrom(offset, last epoch) ──► leader ── Proposal(in-sync set) ──► controller
         ◄── batches, high watermark, or where they diverge ──     ◄── Assignment ──

epochs     the start offset of each leader epoch, and where two logs diverge
assignment the controllers' decision about a partition
leader     followers' positions, the high watermark, the in-sync set
follower   the fetch offset, truncation, the high watermark

Offsets and epochs only, without log or network.
"""
