# C types for avro_writer.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.native cimport Source, Target

cdef int MAX_DEPTH

@cython.final
cdef class Output:
    cdef bytearray buffer
    cdef Target target
    cdef Py_ssize_t room, size
    cdef int depth
    cdef double[::1] numbers
    cdef float[::1] floats
    cdef unsigned char[::1] numbers_octets, floats_octets

    cdef int reserve(self, Py_ssize_t size) except -1
    cdef int add_number(self, long long value) except -1
    @cython.locals(size=Py_ssize_t)
    cdef int add_bytes(self, bytes data) except -1
    cdef int add_slice(self, Source source, Py_ssize_t start, Py_ssize_t size) except -1
    cdef int add_octet(self, int value) except -1
    cdef int add_double(self, double value) except -1
    cdef int add_float(self, double value) except -1

cdef class Node:
    cdef bint write(self, Output out, datum) except -1

cdef class NullNode(Node):
    cdef bint write(self, Output out, datum) except -1

cdef class BooleanNode(Node):
    cdef bint write(self, Output out, datum) except -1

cdef class WholeNode(Node):
    cdef long long low, high
    @cython.locals(value=cython.longlong)
    cdef bint write(self, Output out, datum) except -1

cdef class FloatNode(Node):
    cdef bint wide
    cdef bint write(self, Output out, datum) except -1

cdef class StringNode(Node):
    @cython.locals(data=bytes)
    cdef bint write(self, Output out, datum) except -1

cdef class BytesNode(Node):
    cdef bint write(self, Output out, datum) except -1

cdef class FixedNode(Node):
    cdef Py_ssize_t size
    cdef bint write(self, Output out, datum) except -1

cdef class EnumNode(Node):
    cdef dict numbers
    cdef bint write(self, Output out, datum) except -1

cdef class ArrayNode(Node):
    cdef Node item
    cdef bint write(self, Output out, datum) except -1

cdef class MapNode(Node):
    cdef Node value
    @cython.locals(data=bytes)
    cdef bint write(self, Output out, datum) except -1

cdef class UnionNode(Node):
    cdef list branches
    cdef dict numbers
    cdef int null_branch
    @cython.locals(branch=Node)
    cdef bint write(self, Output out, datum) except -1

cdef class PreparedNode(Node):
    cdef Node inner
    cdef object prepare, schema
    cdef bint write(self, Output out, datum) except -1

cdef class RecordNode(Node):
    cdef list names, nodes, defaults
    cdef Py_ssize_t count
    @cython.locals(index=Py_ssize_t, node=Node)
    cdef bint write(self, Output out, datum) except -1

@cython.final
cdef class Writer:
    cdef Node root
    @cython.locals(out=Output)
    cpdef write(self, datum, bytes prefix)
