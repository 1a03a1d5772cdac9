"""Share groups (KIP-932): their members, their assignments, and the partitions whose states the share coordinator has.

`share_groups` is the state machine, `group` one group that records change, `simple_assignor` assigns partitions to members.
"""
