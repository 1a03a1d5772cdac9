"""The segments of a log: `SegmentList` is Kafka's LogSegments, `Segment` its LogSegment.

segment_list ──► segment (a file of batches and its indexes) ──► known_ranges (what of the file was verified)
     └─────────► retention (which segments may be deleted)
log_folder (the directory of a partition) ──► swap (how compacted segments replace others)
succession, gaps, log_start (find segments that are missing)
"""
