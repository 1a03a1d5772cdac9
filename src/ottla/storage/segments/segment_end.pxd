# C types for segment_end.py.
from ottla.storage.indexes.offset_index cimport OffsetIndex
from ottla.storage.indexes.time_index cimport TimeIndex

cdef long long NO_TIMESTAMP

cdef class SegmentEnd:
    cdef public long long size, bytes_since_entry, index_interval, base_offset
    cdef public long long max_timestamp, max_timestamp_offset, first_time, used
    cdef public bint changed
    cdef public object _file, _transactions
    cdef public OffsetIndex _offsets
    cdef public TimeIndex _times

    cpdef bint indexed(self) except -1
    cpdef account(self, long long last_offset, long long max_timestamp, long long size)

cdef class Savepoint:
    cdef readonly long long size, bytes_since_entry, max_timestamp, max_timestamp_offset
    cdef readonly Py_ssize_t offsets, times
    cdef readonly object transactions
