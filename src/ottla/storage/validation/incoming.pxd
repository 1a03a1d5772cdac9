# C types for incoming.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.native cimport Source, Target

cdef int CODEC_MASK, CONTROL, HEADER_BYTES, LOG_APPEND_TIME, MAGIC, TRANSACTIONAL, PREFIX_BYTES, GZIP, LZ4, ZSTD
cdef long long MASK32, NEVER, LEAST_RECORD, LAST_SHIFT
cdef long long GZIP_BEGINS, LZ4_BEGINS, ZSTD_BEGINS, ZSTD_SKIPS, ANY_SKIPPED
cdef tuple EXPANSION

@cython.final
cdef class Incoming:
    cdef readonly object view
    cdef Target octets
    cdef public object markers
    cdef readonly Py_ssize_t size_bytes, largest
    cdef readonly long long offsets, latest
    cdef readonly bint identified, claims_time, backwards

    @cython.locals(octets=Source, end=Py_ssize_t, position=Py_ssize_t, length=Py_ssize_t)
    cpdef bint check_batches(self, bint from_client) except -1

    @cython.locals(attributes=int, latest=cython.longlong)
    cdef bint check_batch(self, Source octets, Py_ssize_t position, Py_ssize_t size, bint from_client) except -1

    @cython.locals(position=Py_ssize_t)
    cpdef list headers(self)

    @cython.locals(octets=Target, position=Py_ssize_t)
    cpdef stamp(self, long long base_offset, int leader_epoch, object append_time_ms)

@cython.locals(last_delta=cython.longlong)
cdef bint is_possible(Source octets, Py_ssize_t position) noexcept

@cython.locals(attributes=int)
cdef bint is_a_producers(Source octets, Py_ssize_t position) noexcept

@cython.locals(count=cython.longlong, codec=int, end=Py_ssize_t, length=cython.longlong, shift=int, byte=int, factor=cython.longlong)
cdef bint has_its_records(Source octets, Py_ssize_t position, Py_ssize_t size) except -1

@cython.locals(first=cython.longlong)
cdef bint has_codec_header(Source octets, Py_ssize_t position, Py_ssize_t end, int codec) noexcept

@cython.locals(incoming=Incoming, from_client=cython.bint)
cpdef Incoming check_incoming(object data, object config, object origin, object now_ms)

@cython.locals(headers=list, found=Incoming)
cdef Incoming check_records_of(Incoming incoming, object config, object now_ms)
