"""The coordinator of transactions: who may write under a transactional id, and how each of its transactions ends.

    ProducerRequested ──► Empty ──► Ongoing ──► PrepareCommit ──► CompleteCommit ──► Ongoing …
                                       └──────► PrepareAbort ───► CompleteAbort

What is prepared will be done, whatever crashes: the markers in the partitions follow, and `Completed` once they are all there.
"""
