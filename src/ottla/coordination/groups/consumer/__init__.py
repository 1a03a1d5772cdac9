"""Consumer groups whose coordinator assigns the partitions (KIP-848), beside the classic ones in the same log.

    heartbeat ──► who is it, and what does it want?    subscriptions → group epoch
              ──► what is everybody to have?           assignors     → target assignment
              ──► what may this member have by now?    reconciling   → member epoch, current assignment

Three epochs count what has been done. The group epoch grows with every change of members, subscriptions or topics. The target
assignment is worked out for a group epoch, and bears it as `assignment_epoch`; here that happens in the same heartbeat, in
Kafka perhaps later. A member epoch is the assignment epoch that the member has arrived at. So a group is

    Assigning     while the group epoch is ahead of the assignment epoch
    Reconciling   while the member epoch of anybody is behind the assignment epoch, or somebody waits for partitions
    Stable        once everybody has what it is to have

and nobody ever waits for all the others: a member that need not give anything back is in the new epoch with its next heartbeat.
What it is to get, and another one still has, it gets with a later one (`reconciling`).

What changes a group is written as Kafka's records, and the records are what changes it: a `ConsumerDraft` of the group takes them
while the decision is made, and the group itself once they are in the log.
"""
