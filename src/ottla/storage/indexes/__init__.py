"""The indexes of a segment: by offset, by time, and of aborted transactions.

index_set ──► offset_index, time_index ──► index_file
    └───────► transaction_index

Indexes lead to batches and are derived from them. An entry is compared with its batch before it is used.
"""
