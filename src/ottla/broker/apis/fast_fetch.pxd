# C types for fast_fetch.py.
cimport cython

cimport ottla.broker.network_server.frame_bytes_native as frame_bytes
cimport ottla.records.native as raw
from ottla.broker.apis.request_bytes cimport RequestBytes
from ottla.records.native cimport Source, Target
from ottla.storage.log.append_path cimport LogEnd

cdef int FETCH_KEY, FIRST_VERSION, IDS_SINCE, LAST_VERSION, READ_COMMITTED, STATE_SINCE
cdef Py_ssize_t ANSWER_BYTES, FIXED_BYTES, PARTITION_BYTES

@cython.final
cdef class Want:
    cdef readonly object name, topic_id, records
    cdef readonly int index, leader_epoch, limit
    cdef readonly long long offset, log_start_offset, last_stable_offset, high_watermark

@cython.final
cdef class FastFetch(RequestBytes):
    cdef readonly object session
    cdef public object titles
    cdef readonly Py_ssize_t found_bytes
    cdef readonly int max_wait_ms, min_bytes, max_bytes, session_id, session_epoch
    cdef readonly bint committed
    cdef public list topics, wants, awaited

    @cython.locals(topics=Py_ssize_t)
    cpdef bint read(self, object node) except -1
    @cython.locals(octets=Source, size=Py_ssize_t, at=Py_ssize_t)
    cdef bint read_header(self) except -1
    @cython.locals(octets=Source, at=Py_ssize_t)
    cdef bint read_limits(self) except -1
    @cython.locals(start=Py_ssize_t, stop=Py_ssize_t, partitions=Py_ssize_t, first=Py_ssize_t)
    cdef bint read_topic(self, object node) except -1
    @cython.locals(octets=Source, at=Py_ssize_t)
    cdef bint read_partition(self, object name, object topic_id) except -1
    cdef bint forgets_nothing(self) except -1
    @cython.locals(left=cython.longlong, size=cython.longlong, want=Want)
    cpdef bint read_logs(self, object node, long long max_bytes) except -1
    @cython.locals(log=LogEnd, offset=cython.longlong, end=cython.longlong, limit=cython.longlong)
    cdef bint finds(self, object partition, Want want, long long left) except -1
    @cython.locals(
        titles=Source, size=Py_ssize_t, start=Py_ssize_t, stop=Py_ssize_t, partitions=Py_ssize_t, head=bytearray, out=Target,
        at=Py_ssize_t, number=Py_ssize_t, cut=Py_ssize_t, want=Want
    )
    cpdef list answer(self)
    cdef Py_ssize_t put_partition(self, Target out, Py_ssize_t at, Want want) except -1
