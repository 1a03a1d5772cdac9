# C types for segment_end.py.
from ottla.storage.indexes.index_set cimport IndexSet

cdef class SegmentEnd:
    cdef public long long size, base_offset, first_time, used
    cdef public bint changed
    cdef public object _file
    cdef readonly IndexSet indexes

    cpdef account(self, long long last_offset, long long max_timestamp, long long size)
