# C types for fast_produce.py.
cimport cython

cimport ottla.broker.network_server.frame_bytes_native as frame_bytes
cimport ottla.records.native as raw
from ottla.broker.apis.request_bytes cimport RequestBytes
from ottla.records.native cimport Source, Target
from ottla.storage.log.append_path cimport append_batches
from ottla.storage.log.append_path cimport LogEnd

cdef int ACKS_ALL, CODEC_MASK, FIRST_VERSION, IDS_SINCE, LAST_VERSION, TRANSACTIONAL
cdef int FLEXIBLE_SINCE, LZ4, MESSAGES_SINCE, START_OFFSET_SINCE, ZSTD, ZSTD_SINCE
cdef Py_ssize_t FIXED_BYTES, FLAGS_AT, HEADER_BYTES, PARTITION_BYTES, PREFIX_BYTES

@cython.final
cdef class FastProduce(RequestBytes):
    cdef readonly int acks, timeout_ms
    cdef readonly list topics, batches, uncommitted

    @cython.locals(topics=Py_ssize_t)
    cpdef bint read(self, object node, object connection) except -1
    @cython.locals(octets=Source, size=Py_ssize_t, at=Py_ssize_t)
    cdef bint read_header(self) except -1
    @cython.locals(start=Py_ssize_t, stop=Py_ssize_t, partitions=Py_ssize_t)
    cdef bint read_topic(self, object node, object connection) except -1
    @cython.locals(start=Py_ssize_t)
    cdef object topic_id(self, object node)
    @cython.locals(octets=Source, index=int, size=Py_ssize_t, start=Py_ssize_t, flags=int)
    cdef bint read_partition(self, object node, object name) except -1
    @cython.locals(now_ms=cython.longlong, outcomes=list)
    cpdef list append(self, object node)
    cpdef object answer(self, list outcomes)
    @cython.locals(
        size=Py_ssize_t, start=Py_ssize_t, stop=Py_ssize_t, partitions=Py_ssize_t, answer=bytearray, out=Target,
        at=Py_ssize_t, number=Py_ssize_t
    )
    cdef bytearray encoded(self, list outcomes)
    cdef Py_ssize_t put_size(self, Target out, Py_ssize_t at, Py_ssize_t size) noexcept
    cdef Py_ssize_t put_tags(self, Target out, Py_ssize_t at) noexcept
    cdef Py_ssize_t put_partition(self, Target out, Py_ssize_t at, int index, object appended) except -1
    cpdef object refusal(self, list outcomes)
    cpdef object release(self)

@cython.locals(log=LogEnd)
cdef object append_to(object node, object partition, object records, long long now_ms)

cdef bint is_ready(object partition, int acks) except -1
