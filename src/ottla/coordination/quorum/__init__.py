"""The quorum that stores the cluster's metadata in a replicated log, and the observers that copy the log without a vote.

This is KRaft: KIP-595, KIP-630, KIP-853, KIP-996 and KIP-1186. Start with `raft`, which explains an election step by step.

    raft                        the state machine of a controller's replica, voter or observer
    events                      its events and actions
    state                       its states, their transitions, and the persisted election state
    leadership                  the leader's view of the other replicas: what is committed, and when the leader resigns
    log_shape                   a description of the log
    voters, voters_record,      the set of voters, the record that stores it, its earlier values, and requests that change it
      voter_history, voter_changes
    request_tracker, wire       requests in flight, and their messages
    observer                    the state machine of a broker, which copies the log from the controllers
    described                   DescribeQuorum and DescribeCluster
    control_records, config     the other control records, and the timeouts

Each module is pure: it has no clock, network or disk.
"""
