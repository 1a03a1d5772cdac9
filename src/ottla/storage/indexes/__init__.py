"""The indexes of a segment: by offset, by time, and of aborted transactions.

offset_index, time_index ──► index_file · transaction_index

They lead to batches and are derived from them: what an index says is held against the batch it leads to.
"""
