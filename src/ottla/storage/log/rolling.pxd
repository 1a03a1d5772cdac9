# C types for rolling.py.
cimport cython

from ottla.storage.indexes.offset_index cimport OffsetIndex
from ottla.storage.indexes.time_index cimport TimeIndex
from ottla.storage.segments.segment_end cimport SegmentEnd

cdef long long INT32_MAX, OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES, UNREAD

@cython.locals(limit=cython.longlong, filled=cython.longlong)
cpdef bint is_full(
    SegmentEnd segment, Py_ssize_t size, long long latest, long long last_offset, object config, long long open_ms
) except -1

@cython.locals(offsets=OffsetIndex, times=TimeIndex)
cdef bint has_full_index(SegmentEnd segment, long long limit) except -1

@cython.locals(first=cython.longlong)
cpdef long long age_ms(SegmentEnd segment, long long latest, long long open_ms) except? -1
