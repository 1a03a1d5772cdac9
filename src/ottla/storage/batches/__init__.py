"""Reading the batches in the bytes of a log file, with as little trust as necessary.

scan            each header is trusted; the first that is invalid is an error           (a fetch, compaction)
batch_run       whole batches in a row, at the speed of their CRCs                      (a start after a crash)
verified_walk   headers are compared with their neighbours, CRCs decide if these differ (batches of earlier processes)
walk            only CRCs are trusted, and damage is skipped                            (after damage, and for tools)
"""
