# C types for avro_column_writer.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.native cimport Source
from ottla.schemas.avro_writer cimport Output

cdef Py_ssize_t MAX_BYTES, MAX_ENTRIES
cdef double MAX_FLOAT

cdef class ColumnNode:
    cdef const unsigned char[::1] bits
    cdef Py_ssize_t first
    cdef bint has_nulls
    @cython.locals(bit=Py_ssize_t)
    cdef bint is_null(self, Py_ssize_t row) except -1
    cdef bint write(self, Output out, Py_ssize_t row) except -1

cdef class ConstantNode(ColumnNode):
    cdef bytes data
    cdef bint write(self, Output out, Py_ssize_t row) except -1

cdef class OptionalNode(ColumnNode):
    cdef ColumnNode inner
    cdef int null_branch, value_branch
    cdef bint write(self, Output out, Py_ssize_t row) except -1

cdef class BooleanNode(ColumnNode):
    cdef const unsigned char[::1] octets
    @cython.locals(bit=Py_ssize_t)
    cdef bint write(self, Output out, Py_ssize_t row) except -1

cdef class NumberNode(ColumnNode):
    cdef const long long[::1] numbers
    cdef long long low, high, factor, divisor, limit
    @cython.locals(value=cython.longlong)
    cdef bint write(self, Output out, Py_ssize_t row) except -1

cdef class FloatNode(ColumnNode):
    cdef const double[::1] numbers
    cdef bint is_wide
    @cython.locals(value=double)
    cdef bint write(self, Output out, Py_ssize_t row) except -1

cdef class BytesNode(ColumnNode):
    cdef const int[::1] bounds
    cdef const unsigned char[::1] octets
    cdef Source data
    cdef Py_ssize_t size
    @cython.locals(start=Py_ssize_t, size=Py_ssize_t)
    cdef bint write(self, Output out, Py_ssize_t row) except -1
    @cython.locals(row=Py_ssize_t, other=Py_ssize_t, size=Py_ssize_t, index=Py_ssize_t)
    cdef bint has_duplicate(self, Py_ssize_t start, Py_ssize_t stop) except -1

cdef class DecimalNode(ColumnNode):
    cdef const unsigned char[::1] octets
    cdef Source data
    cdef Py_ssize_t width, size
    @cython.locals(start=Py_ssize_t, size=Py_ssize_t, index=Py_ssize_t, sign=int)
    cdef bint write(self, Output out, Py_ssize_t row) except -1
    @cython.locals(size=Py_ssize_t, index=Py_ssize_t)
    cdef Py_ssize_t significant(self, Py_ssize_t start, int sign) except -1

cdef class EnumNode(ColumnNode):
    cdef const int[::1] indices, mapping
    cdef int count
    @cython.locals(index=int)
    cdef bint write(self, Output out, Py_ssize_t row) except -1

cdef class ListNode(ColumnNode):
    cdef const int[::1] bounds
    cdef Py_ssize_t base
    cdef ColumnNode item
    @cython.locals(start=Py_ssize_t, stop=Py_ssize_t, index=Py_ssize_t)
    cdef bint write(self, Output out, Py_ssize_t row) except -1

cdef class MapNode(ColumnNode):
    cdef const int[::1] bounds
    cdef Py_ssize_t base
    cdef BytesNode key
    cdef ColumnNode value
    @cython.locals(start=Py_ssize_t, stop=Py_ssize_t, index=Py_ssize_t)
    cdef bint write(self, Output out, Py_ssize_t row) except -1

cdef class RecordNode(ColumnNode):
    cdef list fields
    cdef Py_ssize_t count
    @cython.locals(index=Py_ssize_t, node=ColumnNode)
    cdef bint write(self, Output out, Py_ssize_t row) except -1

@cython.locals(row=Py_ssize_t, before=Py_ssize_t, out=Output)
cpdef tuple write_rows(
    ColumnNode node, int[::1] bounds, bytes prefix, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t limit_bytes, encode_row,
)
