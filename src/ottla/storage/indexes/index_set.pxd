# C types for index_set.py.
from ottla.storage.indexes.offset_index cimport OffsetIndex
from ottla.storage.indexes.time_index cimport TimeIndex

cdef long long NO_TIMESTAMP, OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES

cdef class IndexSavepoint:
    cdef readonly long long log_bytes, bytes_since_entry, max_timestamp, max_timestamp_offset
    cdef readonly Py_ssize_t offset_entries, time_entries
    cdef readonly object transactions

cdef class IndexSet:
    cdef object _directory, _suffix
    cdef readonly OffsetIndex _offsets
    cdef readonly TimeIndex _times
    cdef readonly object _transactions
    cdef readonly long long base_offset, interval_bytes
    cdef public long long bytes_since_entry, max_timestamp, max_timestamp_offset
    cdef public object unverified_times

    cpdef bint is_loaded(self) except -1
    cpdef add(self, long long last_offset, long long max_timestamp, long long position, long long size)
    cpdef bint has_reached(self, long long limit_bytes) except -1
    cpdef IndexSavepoint savepoint(self, long long log_bytes)
