# C types for offset_index.py.

cdef class OffsetIndex:
    cdef readonly object _file
    cdef readonly long long _base
    cdef readonly object _offsets, _positions

    cpdef append(self, long long last_offset, long long position)
