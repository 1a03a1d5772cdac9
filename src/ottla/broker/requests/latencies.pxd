# C types for latencies.py.
cimport cython

cimport ottla.broker.plain_native as plain_bytes
from ottla.records.native cimport Source

cdef tuple BOUNDS
cdef double LEAST
cdef Py_ssize_t BUCKETS, LAST_KEY

@cython.final
cdef class Latencies:
    cdef long long[::1] _counts
    cdef double[::1] _sums

    @cython.locals(octets=Source)
    cpdef note_frame(self, memoryview frame, double seconds)
    cpdef note(self, int api_key, double seconds)
