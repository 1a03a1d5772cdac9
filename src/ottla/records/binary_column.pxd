# C types for binary_column.py.
cimport cython

cimport ottla.records.native as raw

@cython.final
cdef class BinaryColumn:
    cdef readonly Py_ssize_t count, null_count
    cdef readonly object offsets, data, validity
    cdef readonly const int[::1] bounds
    cdef readonly const unsigned char[::1] octets, bits

    @cython.locals(good=cython.bint, row=Py_ssize_t)
    cdef bint holds(self)
    cpdef get(self, Py_ssize_t row)
    cpdef Py_ssize_t size(self, Py_ssize_t row) except? -2

cdef Py_ssize_t MAX_BYTES

@cython.locals(row=Py_ssize_t, end=Py_ssize_t, nulls=Py_ssize_t, item=bytes)
cdef Py_ssize_t measure(list items, int[::1] bounds) except -1
