# C types for appending.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.native cimport Source
from ottla.storage.validation.incoming cimport Incoming, checked
from ottla.storage.log.rolling cimport is_full

cdef Py_ssize_t PREFIX_BYTES

@cython.locals(incoming=Incoming, base_offset=cython.longlong, last_offset=cython.longlong)
cpdef append(object log, object data, int leader_epoch, object now_ms, object origin, int transaction_version)

cpdef segment_for(
    object log, Py_ssize_t size, long long latest, long long first_offset, long long last_offset, object now_ms
)
cdef ready(object log, object segment, Incoming incoming, object now_ms)

@cython.locals(octets=Source, position=Py_ssize_t, size=Py_ssize_t, last_offset=cython.longlong)
cdef int account(object segment, Incoming incoming) except -1

cdef int note_producers(object log, object segment, Incoming incoming, object now_ms) except -1
