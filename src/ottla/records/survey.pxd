# C types for survey.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.native cimport Source

cdef Py_ssize_t HEADER_BYTES, PREFIX_BYTES
cdef int CODEC_MASK, LAST_CODEC, CONTROL, LOG_APPEND_TIME, MAGIC
cdef long long MAX_BASE_OFFSET, MASK32

@cython.final
cdef class Batch:
    cdef readonly const unsigned char[::1] records
    cdef readonly Py_ssize_t start, stop
    cdef readonly int count, last_offset_delta, leader_epoch
    cdef readonly long long base_offset
    cdef readonly unsigned long long base_timestamp, max_timestamp
    cdef readonly bint append_time

@cython.final
cdef class Survey:
    cdef readonly list batches
    cdef readonly Py_ssize_t rows, size_bytes
    cdef readonly long long next_offset

@cython.locals(
    found=Survey, view=object, octets=Source, end=Py_ssize_t, position=Py_ssize_t, size=Py_ssize_t, wanted=cython.bint,
    base_offset=cython.longlong, last_offset=cython.longlong, batch=Batch, expected=cython.longlong, beyond=cython.bint,
)
cpdef Survey survey(
    object data, long long from_offset, long long up_to, bint check_crcs, object aborted, Py_ssize_t limit_bytes,
    long long asked, long long below
)

@cython.locals(
    view=object, octets=Source, end=Py_ssize_t, position=Py_ssize_t, size=Py_ssize_t, after=cython.longlong,
    next_offset=cython.longlong, epoch=int, count=cython.longlong,
)
cpdef tuple extent(object data)

@cython.locals(octets=Source, base_offset=cython.longlong, last_offset_delta=cython.longlong, count=cython.longlong)
cdef int check(object view, Py_ssize_t position, Py_ssize_t size, bint check_crcs) except -1

@cython.locals(
    octets=Source, base_offset=cython.longlong, last_offset=cython.longlong, following=Py_ssize_t, after=cython.longlong,
    leapt=cython.bint,
)
cdef int check_place(object view, Py_ssize_t position, Py_ssize_t size, long long expected, long long below) except -1

cdef bint has_data(Source octets, Py_ssize_t position) noexcept

@cython.locals(octets=Source, attributes=int, batch=Batch)
cdef Batch batch_at(object view, Py_ssize_t position, Py_ssize_t size, Py_ssize_t limit_bytes)
