# C types for record_intake.py.
cimport cython

cimport ottla.native_clock as clock
from ottla.client.producer.future cimport RecordFuture
from ottla.client.producer.producer_batch cimport upper_bound_bytes
from ottla.client.producer.record_accumulator cimport RecordAccumulator
from ottla.records.murmur2 cimport partition_for

cdef int ANY
cdef object choose_by_key, choose_any

@cython.final
cdef class KnownTopics:
    cdef object cluster
    cdef dict partitions

@cython.final
cdef class HeldRecord:
    cdef readonly object topic, timestamp, headers, on_delivery
    cdef readonly bytes value, key
    cdef readonly int partition

@cython.final
cdef class RecordIntake:
    cdef object _partitioner, _interceptors, _metadata, _transactional
    cdef RecordAccumulator _accumulator
    cdef Py_ssize_t _max_record_bytes, _max_request_size
    cdef object _checked_callback, _key_serializer, _value_serializer, _contextual
    cdef KnownTopics _known

    @cython.locals(target=int, future=RecordFuture)
    cpdef offer(self, topic, value, key, partition, timestamp, headers, on_delivery)
    cdef RecordFuture _append(
        self, topic, bytes value, bytes key, int partition, timestamp, headers, on_delivery, claim
    )
    @cython.locals(known=KnownTopics, count=int)
    cdef int _count_partitions(self, topic, int partition) except -1
    cdef int _choose_partition(self, topic, bytes key, bytes value, int count) except? -2

cdef int partition_of(number) except? -2
cdef long long moment_of(timestamp) except? -1
