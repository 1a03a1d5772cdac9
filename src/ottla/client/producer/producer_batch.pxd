# C types for producer_batch.py.
cimport cython

from ottla.client.producer.future cimport RecordFuture, new_future
from ottla.client.producer.produce_request_result cimport ProduceRequestResult
from ottla.records.builder cimport BatchBuilder

cdef Py_ssize_t OVERHEAD_BYTES

@cython.final
cdef class ProducerBatch:
    cdef public object tp, created, reserved_bytes, order, payload, attempts, retry_at, last_error, producer, base_sequence
    cdef public bint full, sealed, transactional, sequence_reset
    cdef public Py_ssize_t count
    cdef public BatchBuilder builder
    cdef public ProduceRequestResult result

    @cython.locals(index=Py_ssize_t, key_size=Py_ssize_t, value_size=Py_ssize_t)
    cpdef RecordFuture try_append(self, long long timestamp, bytes key, bytes value, headers, on_delivery=*)

@cython.locals(size=Py_ssize_t)
cpdef Py_ssize_t upper_bound_bytes(bytes key, bytes value, headers) except -1

@cython.locals(batch=ProducerBatch, records=Py_ssize_t, attempts=Py_ssize_t)
cpdef tuple load_of(list batches)
