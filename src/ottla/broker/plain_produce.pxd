# C types for plain_produce.py.
cimport cython

cimport ottla.broker.plain_native as plain_bytes
cimport ottla.records.native as raw
from ottla.records.native cimport Source, Target
from ottla.storage.log.append_path cimport append_batches
from ottla.storage.log.append_path cimport LogEnd

cdef int ACKS_ALL, CODEC_MASK, FIRST_VERSION, IDS_SINCE, LAST_CODEC, LAST_VERSION, TRANSACTIONAL
cdef Py_ssize_t FIXED_BYTES, FLAGS_AT, HEADER_BYTES, PARTITION_BYTES, PREFIX_BYTES

@cython.final
cdef class PlainProduce:
    cdef readonly object view
    cdef Source octets
    cdef Py_ssize_t end, position, body
    cdef readonly int version, acks, correlation_id
    cdef readonly list topics, batches

    @cython.locals(topics=Py_ssize_t)
    cpdef bint read(self, object node, object connection) except -1
    @cython.locals(octets=Source, size=Py_ssize_t, at=Py_ssize_t)
    cdef bint read_header(self) except -1
    @cython.locals(start=Py_ssize_t, stop=Py_ssize_t, partitions=Py_ssize_t)
    cdef bint read_topic(self, object node, object connection) except -1
    @cython.locals(size=Py_ssize_t, start=Py_ssize_t)
    cdef object topic_name(self)
    @cython.locals(start=Py_ssize_t)
    cdef object topic_id(self, object node)
    @cython.locals(octets=Source, index=int, size=Py_ssize_t, start=Py_ssize_t, flags=int)
    cdef bint read_partition(self, object node, object name) except -1
    @cython.locals(value=Py_ssize_t, shift=int, octet=Py_ssize_t)
    cdef Py_ssize_t uvarint(self) noexcept
    @cython.locals(at=Py_ssize_t)
    cdef bint passes_zero(self) noexcept
    @cython.locals(now_ms=cython.longlong, outcomes=list, refused=cython.bint)
    cpdef list carry_out(self, object node)
    @cython.locals(
        size=Py_ssize_t, start=Py_ssize_t, stop=Py_ssize_t, partitions=Py_ssize_t, answer=bytearray, out=Target,
        at=Py_ssize_t, number=Py_ssize_t
    )
    cdef bytearray answer(self, list outcomes)
    cdef list refusal(self, list outcomes)

@cython.locals(log=LogEnd)
cdef object append_to(object node, object partition, object records, long long now_ms)

cdef bint is_ready(object partition, int acks) except -1

cdef int put_partition(Target out, Py_ssize_t at, int index, object appended) except -1
