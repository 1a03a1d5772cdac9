# C types for appending.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.native cimport Source
from ottla.storage.log.log_end cimport LogEnd
from ottla.storage.segments.segment_end cimport Savepoint, SegmentEnd
from ottla.storage.validation.incoming cimport Incoming, checked
from ottla.storage.log.rolling cimport is_full

cdef Py_ssize_t PREFIX_BYTES
cdef long long LOOK_MS, NO_TIMESTAMP

@cython.locals(
    incoming=Incoming, base_offset=cython.longlong, last_offset=cython.longlong, segment=SegmentEnd, before=Savepoint
)
cpdef append(LogEnd log, object data, int leader_epoch, long long now_ms, object origin, int transaction_version)

@cython.locals(segments=list, segment=SegmentEnd)
cpdef segment_for(
    LogEnd log, Py_ssize_t size, long long latest, long long first_offset, long long last_offset, long long now_ms
)
cdef Savepoint ready(LogEnd log, SegmentEnd segment, Incoming incoming, long long now_ms)

@cython.locals(octets=Source, position=Py_ssize_t, size=Py_ssize_t, last_offset=cython.longlong)
cdef int account(SegmentEnd segment, Incoming incoming) except -1

cdef int note_producers(LogEnd log, SegmentEnd segment, Incoming incoming, long long now_ms) except -1
