"""Consumer groups: the coordinator assigns the partitions (KIP-848). They share the log with classic groups.

    heartbeat ──► identify the member, compare its subscription      subscription → group epoch
              ──► compute the assignment of all members              assignor     → target assignment
              ──► advance this member towards its target             reconciling  → member epoch, current assignment

Three epochs measure the progress. The group epoch increases with every change of members, subscriptions or topics. The target assignment is
computed for a group epoch, its `assignment_epoch`; here within the same heartbeat, in Kafka possibly later. The member epoch is the
assignment epoch that the member has reached. A group is

    Assigning     while the group epoch is greater than the assignment epoch
    Reconciling   while a member epoch is less than the assignment epoch, or a member waits for partitions
    Stable        when every member has its target assignment

No member waits for all others, as in a classic rebalance. A member with nothing to revoke reaches the new epoch with its next heartbeat.
Partitions that another member has not revoked yet are assigned to it with a later heartbeat (`reconciling`).

Changes of a group are written as Kafka's records, and only records change a group: a `ConsumerDraft` applies them while the decision is
made, and the group itself applies them after they were appended. Kafka's counterparts are ConsumerGroup, TargetAssignmentBuilder
and CurrentAssignmentBuilder.
"""
