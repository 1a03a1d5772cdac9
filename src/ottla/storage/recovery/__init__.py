"""What a log knows beside its batches, found again in them: Kafka's LogLoader, and who else asks the batches.

log_loader ──► producer_recovery ◄── transaction_check: is the index of aborted transactions true?
                                     epoch_check: are the leader epochs?
"""
