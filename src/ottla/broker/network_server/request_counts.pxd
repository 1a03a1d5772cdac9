# C types for request_counts.py.
cimport cython

cimport ottla.broker.network_server.frame_bytes_native as frame_bytes
from ottla.records.native cimport Source

cdef Py_ssize_t CLIENT_ID, LAST_KEY, MOST_BYTES, NULL

@cython.final
cdef class RequestCounts:
    cdef long long[::1] _by_api
    cdef dict _by_client, _errors
    cdef object _names
    cdef bytes _client
    cdef long long _others, _times

    @cython.locals(
        size=Py_ssize_t, octets=Source, key=Py_ssize_t, length=Py_ssize_t, stop=Py_ssize_t
    )
    cpdef record(self, memoryview frame)
    cdef _write_down(self)
