# C types for binary_rows.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.native cimport Source, Target

cdef Py_ssize_t LENGTH_BYTES, COUNT_BYTES
cdef int NULL

@cython.locals(row=Py_ssize_t, at=Py_ssize_t, nulls=cython.bint)
cdef int measure(
    Py_ssize_t width, Py_ssize_t first, const int[::1] bounds, const unsigned char[::1] bits, long long[::1] places
) except -1

@cython.locals(row=Py_ssize_t, size=Py_ssize_t, end=Py_ssize_t)
cdef Py_ssize_t begin(long long[::1] places) except -1

@cython.locals(row=Py_ssize_t, target=Target)
cdef int count_fields(int fields, long long[::1] places, bytearray rows) except -1

@cython.locals(
    row=Py_ssize_t, at=Py_ssize_t, place=Py_ssize_t, size=Py_ssize_t, octet=Py_ssize_t, nulls=cython.bint,
    source=Source, target=Target,
)
cdef int fill(
    Py_ssize_t width, Py_ssize_t first, const unsigned char[::1] octets, const int[::1] bounds,
    const unsigned char[::1] bits, long long[::1] places, bytearray rows,
) except -1
