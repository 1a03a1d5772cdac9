"""Copies of a partition that agree: a leader, its followers, and which of them are in sync.

follower ── FetchFrom(offset, last epoch) ──► leader ── Proposal(in-sync set) ──► controller
         ◄── batches, high watermark, or where they part ──     ◄── Assignment ──

epochs     where each leader's time began, and where two logs part
assignment what the controller says of a partition
leader     followers' positions, the high watermark, who is in sync
follower   from where to fetch, where to cut, what is committed

Offsets and epochs only: the log is somebody else's, and so is the network.
"""
