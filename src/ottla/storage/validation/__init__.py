"""Validation of batches before they are appended: Kafka's LogValidator.

incoming (all batches, in one walk) ──► record_check (settings of the log, and the records of batches)
"""
