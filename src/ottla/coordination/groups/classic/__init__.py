"""Classic groups: the coordinator says who is in, and one member, the leader, who reads what.

    Empty ──► PreparingRebalance ──► CompletingRebalance ──► Stable
      ▲                │  ▲                   │                │
      └────────────────┘  └───────────────────┴────────────────┘

How a generation comes about. Somebody comes, goes, falls silent or changes, and the group is PreparingRebalance: nobody can be
told to join, so members hear REBALANCE_IN_PROGRESS in answer to their next heartbeat and send JoinGroup. The answers to these
are held back, each under its ticket in `ClassicMember.joining`, until all members have joined or the most patient one's rebalance
timeout is over; who has not come by then is out. Then all answers go at once: a generation has begun, the group is
CompletingRebalance, and one member, the leader, has got everybody's subscription in its answer. Only clients know how to share
out, so every member sends SyncGroup, the leader with what each is to have, and these answers wait for the leader
(`ClassicMember.syncing`). With it the group is written to the log and is Stable. A restart amid a join loses nothing that
anybody was told: the log has the last Stable generation, and members that were waiting join again.

Each verb that changes a group (joining, syncing, leaving, …) is a file of its own, and works on a `ClassicDraft`: the group as
it will be, and what is to be answered, awaited and said of it. The group itself changes when the draft is replayed.
"""
