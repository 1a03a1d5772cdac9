# C types for record_accumulator.py.
cimport cython

from ottla.client.producer.future cimport RecordFuture
from ottla.client.producer.partitioner cimport StickyPartitioner
from ottla.client.producer.producer_batch cimport ProducerBatch, upper_bound_bytes

@cython.final
cdef class TopicQueues:
    cdef readonly StickyPartitioner sticky
    cdef dict _queues, _newest
    cdef str _rack

    @cython.locals(batch=ProducerBatch)
    cdef ProducerBatch open_batch(self, int partition)

@cython.final
cdef class RecordAccumulator:
    cdef bint _closed
    cdef object _pool, _wake
    cdef Py_ssize_t _batch_size, _chunk_bytes
    cdef double _linger, _delivery_timeout
    cdef object _retry_backoff, _make_builder, _make_sticky, _monotonic, _numbering, _events, _spare, _lock, _acquire, _release, _muted, _drain_starts
    cdef bint _adaptive
    cdef str _rack
    cdef object _cluster
    cdef Py_ssize_t _flushes, _serial
    cdef dict _topics
    cdef object _incomplete

    @cython.locals(future=RecordFuture, size=Py_ssize_t, is_started=bint, batch=ProducerBatch)
    cpdef RecordFuture append(
        self, topic, int partition, int partitions, long long timestamp, bytes key, bytes value, headers,
        on_delivery=*, claim=*
    )
    @cython.locals(state=TopicQueues, sticky=StickyPartitioner, batch=ProducerBatch, future=RecordFuture)
    cdef RecordFuture _append_to_open(
        self, topic, int partition, int partitions, long long timestamp, bytes key, bytes value, headers,
        on_delivery
    )
    cdef Py_ssize_t _first_reservation(self, Py_ssize_t record_bytes) except -1
    @cython.locals(needed=Py_ssize_t, lacking=Py_ssize_t)
    cdef bint _extend_reservation(self, ProducerBatch batch, bytes key, bytes value, headers) except -1
    cdef ProducerBatch _new_batch(self, topic, int partition, int partitions, Py_ssize_t reserved)
