# C types for record.py.
cimport cython

from ottla.records.binary_column cimport BinaryColumn

@cython.final
cdef class RecordSource:
    cdef readonly object topic, partition, columns, delivery_counts, key_deserializer, value_deserializer
    cdef readonly BinaryColumn keys, values
    cdef readonly bint deserializes, with_context

    @cython.locals(row=Py_ssize_t)
    cpdef tuple deserialize(self, Py_ssize_t start, Py_ssize_t stop)

# Nothing that a record holds leads back to it.
@cython.no_gc
@cython.freelist(64)
cdef class ConsumerRecord:
    cdef RecordSource _source
    cdef Py_ssize_t _row

cdef class DeserializedRecord(ConsumerRecord):
    cdef object _key, _value

cpdef bint is_same(ConsumerRecord one, ConsumerRecord other) except -1
@cython.locals(record=DeserializedRecord)
cpdef DeserializedRecord remake_record(RecordSource source, Py_ssize_t row, key, value)

@cython.locals(record=ConsumerRecord)
cpdef ConsumerRecord make_record(RecordSource source, Py_ssize_t row)

@cython.final
cdef class RecordIterator:
    cdef readonly RecordSource source
    cdef readonly Py_ssize_t start, row, stop
    cdef readonly list keys, values

    cpdef end(self)
