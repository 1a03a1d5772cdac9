# C types for encoder.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.binary_column cimport BinaryColumn
from ottla.records.native cimport Moments, Numbers, Source, Target

cdef Py_ssize_t HEADER_BYTES, MAX_BATCH_BYTES, OVERHEAD_BYTES

@cython.final
cdef class RecordWriter:
    cdef readonly bytearray buffer
    cdef readonly Py_ssize_t limit, size
    cdef readonly long long max_timestamp
    cdef BinaryColumn keys, values, headers
    cdef const long long[::1] moments
    cdef Target target

    cpdef write_to(self, bytearray buffer, Py_ssize_t limit)
    cpdef move_to(self, bytearray target)
    @cython.locals(
        keys=BinaryColumn, values=BinaryColumn, headers=BinaryColumn, base_timestamp=cython.longlong, timestamp=cython.longlong,
        max_timestamp=cython.longlong, delta=cython.longlong, at=Py_ssize_t, position=Py_ssize_t, row=Py_ssize_t,
        key_size=Py_ssize_t, value_size=Py_ssize_t, header_size=Py_ssize_t, size=Py_ssize_t, moments=Moments,
        key_bounds=Numbers, value_bounds=Numbers, key_octets=Source, value_octets=Source, target=Target,
    )
    cpdef Py_ssize_t write(self, Py_ssize_t first, Py_ssize_t stop) except -1

cdef Py_ssize_t put(Target target, Py_ssize_t at, Source source, Py_ssize_t start, Py_ssize_t size) noexcept
cdef Py_ssize_t size_in(BinaryColumn column, Py_ssize_t row) noexcept
cdef Py_ssize_t field_size(Py_ssize_t size) noexcept
cdef Py_ssize_t count_bytes(BinaryColumn column, Py_ssize_t first, Py_ssize_t stop) noexcept
