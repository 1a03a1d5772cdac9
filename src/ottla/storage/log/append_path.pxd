# C types for append_path.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.native cimport Source
from ottla.storage.indexes.index_set cimport IndexSavepoint
from ottla.storage.segments.segment_end cimport SegmentEnd
from ottla.storage.validation.incoming cimport Incoming, check_incoming

cdef Py_ssize_t PREFIX_BYTES
cdef long long INT32_MAX, NO_TIMESTAMP, PLACE_CHECK_MS, UNREAD

cdef class LogEnd:
    cdef public object directory, config, epochs, producers
    cdef public list segments
    cdef public long long start_offset, end_offset, high_watermark, size_bytes, active_since_ms, seen_ms
    cdef public bint replicated, closed, producers_in_doubt

@cython.locals(
    incoming=Incoming, base_offset=cython.longlong, last_offset=cython.longlong, segment=SegmentEnd, before=IndexSavepoint
)
cpdef append_batches(
    LogEnd log, object data, int leader_epoch, long long now_ms, object origin, int transaction_version
)

cpdef int check_place(LogEnd log, long long now_ms) except -1

@cython.locals(segments=list, segment=SegmentEnd)
cpdef segment_for(
    LogEnd log, Py_ssize_t size, long long latest, long long first_offset, long long last_offset, long long now_ms
)
cdef IndexSavepoint prepare_segment(LogEnd log, SegmentEnd segment, Incoming incoming, long long now_ms)

@cython.locals(octets=Source, position=Py_ssize_t, size=Py_ssize_t, last_offset=cython.longlong)
cdef int account(SegmentEnd segment, Incoming incoming) except -1

cdef int update_producers(LogEnd log, SegmentEnd segment, Incoming incoming, long long now_ms) except -1

@cython.locals(limit=cython.longlong, filled=cython.longlong)
cpdef bint is_full(
    SegmentEnd segment, Py_ssize_t size, long long latest, long long last_offset, object config, long long open_ms
) except -1

cdef bint has_full_index(SegmentEnd segment, long long limit) except -1

@cython.locals(first=cython.longlong)
cpdef long long age_ms(SegmentEnd segment, long long latest, long long open_ms) except? -1
