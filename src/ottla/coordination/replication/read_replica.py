"""The replica from which a consumer should fetch: one in its own rack, if there is one (KIP-392). Pure.

Candidates have the requested offset and are in sync: a lagging one would redirect the consumer again. Of several in the rack the leader comes first,
then the one with the greatest end offset, then the one that was caught up last.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.coordination.replication.leader import Leader


def replica_to_read(leader: Leader, racks: Mapping[int, str | None], rack: str, offset: int, now: float) -> int | None:
    """Return a follower that is nearer to a consumer in `rack` than its leader; None where that is the one to read from."""
    if not rack or racks.get(leader.me) == rack:
        return None
    near = [
        (follower.end, -follower.lag(leader.log_end, now), id_)
        for id_, follower in leader.followers.items()
        if racks.get(id_) == rack and id_ in leader.assignment.in_sync and follower.start <= offset <= follower.end
    ]
    return max(near)[2] if near else None
