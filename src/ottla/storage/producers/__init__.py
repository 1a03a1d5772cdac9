"""The producers of a partition: Kafka's ProducerStateManager.

snapshot_keeper ──► producer_snapshot (the file) ──► producer_entry (one producer) ◄── producer_state (all of them)
"""
