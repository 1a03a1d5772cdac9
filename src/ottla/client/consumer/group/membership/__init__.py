"""A member of a group, seen from inside: what to tell the coordinator next, and what its answers mean.

Pure: no clock, no thread, no socket. There is a membership for each of Kafka's two protocols; both walk a literal table
of states and answer the heartbeat's thread with a `Step`.

A `Member` holds what is known (state, generation or epoch, what waits), a `Membership` is the conversation: what to
say, and what an answer does to that. `Farewell` is the end of it, which outlives the membership: a consumer that is
closed does not wait.

    heartbeat's thread ── decide ──►  Membership  ◄── subscribe, join, leave ── user's thread
                       ◄── Step ────     (one lock, held for these calls only)
"""
