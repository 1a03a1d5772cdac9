# C types for log_end.py.

cdef class LogEnd:
    cdef public object directory, config, epochs, producers
    cdef public list segments
    cdef public long long start_offset, end_offset, high_watermark, size_bytes, active_since_ms, seen_ms
    cdef public bint replicated, closed, producers_in_doubt
