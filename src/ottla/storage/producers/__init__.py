"""What a partition knows of those who write to it: Kafka's ProducerStateManager.

snapshot_keeper ──► producer_snapshot (the file) ──► producer_entry (one producer) ◄── producer_state (all of them)
"""
