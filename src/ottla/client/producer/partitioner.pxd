# C types for partitioner.py.
cimport cython

@cython.final
cdef class StickyPartitioner:
    cdef Py_ssize_t _batch_bytes, _bytes
    cdef int _partition
    cdef object _random, _choices
    cdef list _shares

    cpdef int current_partition(self, int partitions) except -2
    cpdef count_append(self, Py_ssize_t size, int partitions)
    cpdef int partition_for_batch(self, int partitions, bint full) except -2
    cpdef _switch_partition(self, int partitions)
