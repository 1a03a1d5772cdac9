"""Consumer groups whose coordinator assigns the partitions (KIP-848), beside the classic ones in the same log.

    heartbeat ──► who is it, and what does it want?    subscriptions → group epoch
              ──► what is everybody to have?           assignors     → target assignment
              ──► what may this member have by now?    reconciling   → member epoch, current assignment

What changes a group is written as Kafka's records, and the records are what changes it: a `Draft` of the group takes them
while the decision is made, and the group itself once they are in the log.
"""
