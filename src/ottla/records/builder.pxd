# C types for builder.py. What is absent here stays a Python object.
cimport cython

cimport ottla.records.native as raw
from ottla.records.native cimport Target

cdef bytes NO_HEADERS
cdef Py_ssize_t HEADER_BYTES, MAX_BATCH_BYTES, FIRST_BYTES
cdef long long MAX_TIMESTAMP

cdef class BatchBuilder:
    cdef readonly object codec, level
    cdef readonly Py_ssize_t max_bytes, count, size_bytes
    cdef readonly long long base_timestamp, max_timestamp
    cdef bytearray buffer

    @cython.locals(
        key_bytes=bytes, value_bytes=bytes, tail=bytes, delta=cython.longlong, key_size=Py_ssize_t, value_size=Py_ssize_t,
        tail_size=Py_ssize_t, body_size=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t, target=Target,
    )
    cpdef bint append(self, long long timestamp, key, value, headers=*) except -1
