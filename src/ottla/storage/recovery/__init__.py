"""Rebuild the state and files that are derived from the batches: Kafka's LogLoader, and checks of derived files.

log_loader ──► producer_recovery ◄── transaction_check: does the index of aborted transactions match the batches?
                                     epoch_check: do the leader epochs match the batches?
"""
