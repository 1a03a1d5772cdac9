"""The controller role: its replica of the quorum's log, the active controller, and the requests that it serves.

raft_driver ──► quorum_log          active_controller: decides and replays          controller_calls: serves requests
"""
