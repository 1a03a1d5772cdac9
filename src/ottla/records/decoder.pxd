# C types for decoder.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.native cimport Source, Target
from ottla.records.survey cimport Batch

cdef unsigned long long MASK64

@cython.final
cdef class BinaryWriter:
    cdef object offsets
    cdef bytearray data, bitmap
    cdef readonly Py_ssize_t room, rows, size, null_count
    cdef int[::1] bounds
    cdef Target target, bits

    cdef int add(self, Py_ssize_t row, Source source, Py_ssize_t start, Py_ssize_t size) except -1
    cdef int grow(self, Py_ssize_t size) except -1

@cython.final
cdef class RowWriter:
    cdef readonly BinaryWriter keys, values, headers
    cdef readonly object offsets, timestamps
    cdef readonly Py_ssize_t count
    cdef bint with_headers, with_offsets, with_timestamps
    cdef long long[::1] numbers
    cdef unsigned long long[::1] moments

    @cython.locals(
        data=Source, position=Py_ssize_t, end=Py_ssize_t, row=Py_ssize_t, _=Py_ssize_t, size=cython.longlong,
        stop=Py_ssize_t, delta=cython.longlong, offset_delta=cython.longlong, key_size=cython.longlong, key=Py_ssize_t,
        value_size=cython.longlong, value=Py_ssize_t, offset=cython.longlong,
    )
    cpdef add(self, Batch batch, long long from_offset, long long up_to)
    cdef inline int locate(self, Py_ssize_t row, long long offset, unsigned long long moment) noexcept

cdef BinaryWriter make_writer(bint wanted, Py_ssize_t rows, Py_ssize_t size_bytes)

@cython.locals(count=cython.longlong, size=cython.longlong)
cdef Py_ssize_t headers_end(Source data, Py_ssize_t position, Py_ssize_t stop) noexcept
