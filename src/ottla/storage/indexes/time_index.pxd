# C types for time_index.py.

cdef class TimeIndex:
    cdef readonly object _file
    cdef readonly long long _base
    cdef readonly object _timestamps, _offsets

    cpdef bint maybe_append(self, long long timestamp, long long offset) except -1
