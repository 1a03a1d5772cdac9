"""What comes to a log, looked at before it is let in: Kafka's LogValidator.

incoming (all batches, in one walk) ──► record_check (settings of the log, and batches whose records must be read)
"""
