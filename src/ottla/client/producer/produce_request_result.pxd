# C types for produce_request_result.py.
cimport cython

from ottla.client.producer.deliveries cimport DeliveryCallbacks, new_metadata

@cython.final
cdef class ProduceRequestResult:
    cdef readonly object topic, error
    cdef readonly long long partition, base_offset, log_append_time
    cdef readonly bint done
    cdef public bint seen
    cdef readonly list parts
    cdef public DeliveryCallbacks deliveries
    cdef public list _watchers

    cpdef on_delivery(self, callback, long long index, long long timestamp, Py_ssize_t key_size, Py_ssize_t value_size)
    @cython.locals(offset=cython.longlong, moment=cython.longlong)
    cpdef metadata_of(self, long long index, long long timestamp, Py_ssize_t key_size, Py_ssize_t value_size)
