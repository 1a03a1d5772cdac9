# C types for key_map.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.native cimport Source

cdef long long MAX_DELTA

@cython.final
cdef class KeyMap:
    cdef readonly unsigned long long slots, seed, salt
    cdef readonly Py_ssize_t room, size
    cdef public long long end_offset
    cdef readonly object memory
    cdef unsigned long long[::1] words

    @cython.locals(
        data=Source, position=Py_ssize_t, end=Py_ssize_t, index=Py_ssize_t, size=cython.longlong, stop=Py_ssize_t,
        _=cython.longlong, at=Py_ssize_t, offset_delta=cython.longlong, key_size=cython.longlong, offset=cython.longlong,
    )
    cpdef bint add_keys(self, const unsigned char[::1] records, Py_ssize_t count, long long base_offset, long long from_offset) except -1

    @cython.locals(first=cython.ulonglong, second=cython.ulonglong, slot=Py_ssize_t)
    cdef bint put(self, Source data, Py_ssize_t start, Py_ssize_t size, long long offset) noexcept

    @cython.locals(first=cython.ulonglong, second=cython.ulonglong, offset=cython.ulonglong)
    cdef long long last(self, Source data, Py_ssize_t start, Py_ssize_t size) noexcept

    @cython.locals(end=Py_ssize_t, slot=Py_ssize_t)
    cdef Py_ssize_t slot_of(self, unsigned long long first, unsigned long long second) noexcept
