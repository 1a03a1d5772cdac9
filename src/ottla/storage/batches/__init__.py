"""The batches in the bytes of a log file, read with as little trust as there is need for.

scan         each header is believed; the first that cannot be is an error       (a fetch, compaction)
batch_run    whole batches in a row, at the speed of their CRCs                  (a start after a crash)
sound_walk   headers are held against their neighbours, CRCs where these differ  (what was found on the disk)
walk         only a CRC is believed; what is damaged is stepped over             (behind damage, and from outside)
"""
