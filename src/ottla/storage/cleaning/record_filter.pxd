# C types for record_filter.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.native cimport Source, Target
from ottla.storage.cleaning.key_map cimport KeyMap

cdef long long FAR, MAX_DELTA
cdef int MAX_GROWTH

@cython.final
cdef class RecordFilter:
    cdef readonly KeyMap keys
    cdef readonly bytearray buffer
    cdef readonly Py_ssize_t size, kept, tombstones
    cdef readonly long long latest
    cdef Target target

    @cython.locals(
        data=Source, position=Py_ssize_t, end=Py_ssize_t, start=Py_ssize_t, index=Py_ssize_t, size=cython.longlong,
        stop=Py_ssize_t, delta=cython.longlong, at=Py_ssize_t, offset_delta=cython.longlong, key_size=cython.longlong,
        key=Py_ssize_t, value_size=cython.longlong, offset=cython.longlong,
    )
    cpdef Py_ssize_t run(self, const unsigned char[::1] records, Py_ssize_t count, long long base_offset, bint drop_tombstones) except -1

    cdef bint is_last(self, Source data, Py_ssize_t key, Py_ssize_t key_size, long long offset) noexcept

@cython.locals(
    data=Source, end=Py_ssize_t, out=bytearray, target=Target, position=Py_ssize_t, size=Py_ssize_t, _=Py_ssize_t,
    length=cython.longlong, stop=Py_ssize_t, delta=cython.longlong, rest=Py_ssize_t,
)
cpdef shift_times(const unsigned char[::1] records, Py_ssize_t count, long long shift)
