"""The decisions of the active controller: broker states, partition leaders, ISRs and placement (KIP-631, KIP-966).

controller            the state machine: an event or a request in, records and a response out
draft                 the metadata as changed by the records of the present decision
broker_states         the states of a broker, and the transitions at its heartbeats
broker_changes        the records for a broker that starts, stops, is fenced or loses a directory
partition_change      the record for one partition: leader, ISR and ELR after a change
reassignment          the replica sets of a partition during and after a reassignment
"""
