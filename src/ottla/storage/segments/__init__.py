"""The segments of a log: Kafka's LogSegments, each a LogSegment.

segment_list ──► sound_reading, time_search, retention
     └─► segment: a file of batches and its indexes ──► ground: what of it was seen to be sound, or damaged
log_folder: the folder they are in ──► swap: how compacted ones take their place
"""
