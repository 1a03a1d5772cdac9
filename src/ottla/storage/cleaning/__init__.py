"""Compaction: Kafka's LogCleaner.

log_cleaning: between a log and its cleaner
     └─► cleaning_plan (what, and is it worth it) · cleaner ──► batch_cleaner ──► record_filter ──► key_map
                                                                     └─► cleaned_transactions
"""
