"""Rebuilding from the batches what is kept apart from them: Kafka's LogLoader, and other checks of derived files.

log_loader ──► producer_recovery ◄── transaction_check: is the index of aborted transactions true?
                                     epoch_check: are the leader epochs?
"""
