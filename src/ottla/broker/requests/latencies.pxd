# C types for latencies.py.
cimport cython

cimport ottla.broker.plain_native as plain_bytes
from ottla.records.native cimport Source

cdef tuple BOUNDS

@cython.final
cdef class Latencies:
    cdef dict _counts, _sums

    @cython.locals(octets=Source)
    cpdef note_frame(self, memoryview frame, double seconds)
    @cython.locals(counts=list, at=Py_ssize_t)
    cpdef note(self, int api_key, double seconds)
