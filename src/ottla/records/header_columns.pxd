# C types for header_columns.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.binary_column cimport BinaryColumn
from ottla.records.decoder cimport BinaryWriter
from ottla.records.native cimport Source

@cython.locals(data=Source, total=Py_ssize_t, row=Py_ssize_t, count=cython.longlong, _=Py_ssize_t)
cdef Py_ssize_t count_headers(BinaryColumn raw_headers, int[::1] bounds) except -1

@cython.locals(
    data=Source, row=Py_ssize_t, at=Py_ssize_t, stop=Py_ssize_t, position=Py_ssize_t, size=cython.longlong,
    _=cython.longlong,
)
cdef int fill_headers(
    BinaryColumn raw_headers, int[::1] bounds, BinaryWriter keys, BinaryWriter values
) except -1
