"""The state machines of a group member: the next request to the coordinator, and the effect of its responses.

Pure: no clock, no thread, no socket. There is one membership for each of Kafka's two protocols. Both are driven by a
literal table of states and return a `Step` to the heartbeat thread.

A `Member` holds the state (state, generation or epoch, pending data). A `Membership` adds the requests and the effects
of their responses. A `LeaveRequest` exists longer than the membership: the user's thread does not wait for its
response.

    heartbeat thread ── decide ──►  Membership  ◄── subscribe, join, leave ── user's thread
                     ◄── Step ────     (one lock, held for these calls only)
"""
