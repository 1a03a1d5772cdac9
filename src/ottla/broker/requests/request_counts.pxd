# C types for request_counts.py.
cimport cython

cimport ottla.broker.plain_native as plain_bytes
from ottla.records.native cimport Source

cdef Py_ssize_t CLIENT_ID, MOST_BYTES, MOST_CLIENTS, NULL

@cython.final
cdef class RequestCounts:
    cdef list _by_api
    cdef dict _by_client
    cdef long long _others

    @cython.locals(
        size=Py_ssize_t, octets=Source, key=Py_ssize_t, length=Py_ssize_t, name=bytes
    )
    cpdef note(self, memoryview frame)
