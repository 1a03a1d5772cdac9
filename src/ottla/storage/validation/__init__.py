"""What comes to a log, looked at before it is let in: Kafka's LogValidator.

incoming (all batches, in one walk) ──► batch_check (what the log refuses), record_check (where records are looked at)
"""
