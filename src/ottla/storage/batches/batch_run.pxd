# C types for batch_run.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.native cimport Source

cdef Py_ssize_t HEADER_BYTES, PREFIX_BYTES, REMEMBERED
cdef int CODEC_MASK, LAST_CODEC, LATER, MAGIC
cdef long long MASK32, MOST_OFFSET

@cython.final
cdef class Recent:
    cdef readonly int epoch
    cdef readonly list positions

@cython.final
cdef class BatchRun:
    cdef readonly Py_ssize_t index_interval, bytes_since_entry, stop
    cdef public int epoch
    cdef public long long producers_from
    cdef readonly long long max_timestamp, max_timestamp_offset, next_offset
    cdef readonly list entries, producers
    cdef readonly dict recent

    cpdef continue_from(self, Py_ssize_t bytes_since_entry, long long max_timestamp, long long max_timestamp_offset)

    @cython.locals(octets=Source, end=Py_ssize_t, at=Py_ssize_t, size=Py_ssize_t)
    cpdef bint walk(self, object data, Py_ssize_t position, long long expected, long long below) except -1

    @cython.locals(size=Py_ssize_t, attributes=int, last_delta=cython.longlong, count=cython.longlong)
    cdef Py_ssize_t fitting(self, Source octets, Py_ssize_t at, Py_ssize_t room, long long expected, long long below) noexcept

    @cython.locals(producer_id=cython.longlong, epoch=int, found=Recent)
    cdef bint remember(self, Source octets, Py_ssize_t at) except -1

    @cython.locals(last_offset=cython.longlong, timestamp=cython.longlong)
    cdef int add_batch(self, Source octets, Py_ssize_t at, Py_ssize_t size, Py_ssize_t position, long long base_offset) except -1
