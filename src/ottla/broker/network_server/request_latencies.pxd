# C types for request_latencies.py.
cimport cython

cdef tuple BOUNDS
cdef double LEAST
cdef Py_ssize_t BUCKETS, LAST_KEY

@cython.final
cdef class Latencies:
    cdef long long[::1] _counts
    cdef double[::1] _sums

    cpdef record(self, int api_key, double seconds)
