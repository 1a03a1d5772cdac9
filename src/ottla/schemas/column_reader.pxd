# C types for column_reader.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.binary_column cimport BinaryColumn
from ottla.records.native cimport Source, Target

cdef Py_ssize_t PREFIX_BYTES, GUID_BYTES, MAX_BYTES, MAX_EMPTY_ITEMS, MAX_INDEXES

@cython.final
cdef class Cursor:
    cdef const unsigned char[::1] octets
    cdef Source data
    cdef Py_ssize_t start, position, stop, empty_items, depth

    @cython.locals(value=cython.longlong, position=Py_ssize_t)
    cdef long long number(self) except *
    @cython.locals(size=cython.longlong)
    cdef Py_ssize_t length(self) except -1
    @cython.locals(position=Py_ssize_t)
    cdef Py_ssize_t skip(self, Py_ssize_t size) except -1
    cdef int count_item(self, Py_ssize_t before) except -1

cdef class Builder:
    cdef readonly bytearray bits
    cdef Target bit_target
    cdef readonly Py_ssize_t count, null_count, room

    cpdef int reset(self, Py_ssize_t room) except -1
    cdef int grow(self) except -1
    cdef int mark(self, bint valid) except -1
    cpdef int add_null(self) except -1
    @cython.locals(row=Py_ssize_t)
    cpdef int rollback(self, Py_ssize_t count) except -1

cdef class IntBuilder(Builder):
    cdef readonly bytearray data
    cdef int[::1] numbers
    cpdef int reset(self, Py_ssize_t room) except -1
    cdef int grow(self) except -1
    cdef int add(self, int value) except -1
    cpdef int add_null(self) except -1

cdef class LongBuilder(Builder):
    cdef readonly bytearray data
    cdef long long[::1] numbers
    cpdef int reset(self, Py_ssize_t room) except -1
    cdef int grow(self) except -1
    cdef int add(self, long long value) except -1
    cpdef int add_null(self) except -1

cdef class BooleanBuilder(Builder):
    cdef readonly bytearray data
    cdef Target target
    cpdef int reset(self, Py_ssize_t room) except -1
    cdef int grow(self) except -1
    cdef int add(self, bint value) except -1
    @cython.locals(row=Py_ssize_t)
    cpdef int rollback(self, Py_ssize_t count) except -1

cdef class FixedBuilder(Builder):
    cdef readonly bytearray data
    cdef Target target
    cdef readonly Py_ssize_t width
    cpdef int reset(self, Py_ssize_t room) except -1
    cdef int grow(self) except -1
    cdef int add(self, Source source, Py_ssize_t start) except -1
    @cython.locals(sign=int, end=Py_ssize_t, index=Py_ssize_t)
    cdef int add_big_endian(self, Source source, Py_ssize_t start, Py_ssize_t size) except -1

cdef class BytesBuilder(Builder):
    cdef readonly bytearray data, offsets
    cdef int[::1] bounds
    cdef Target target
    cdef readonly Py_ssize_t size
    cdef Py_ssize_t data_room
    cdef readonly bint text
    cpdef int reset(self, Py_ssize_t room) except -1
    cdef int grow(self) except -1
    @cython.locals(high=int, index=Py_ssize_t)
    cdef int add(self, Source source, Py_ssize_t start, Py_ssize_t size) except -1
    cpdef int add_null(self) except -1
    cpdef int rollback(self, Py_ssize_t count) except -1

cdef int check_text(bytes data) except -1

cdef class ListBuilder(Builder):
    cdef readonly bytearray offsets
    cdef int[::1] bounds
    cdef readonly Builder item
    cpdef int reset(self, Py_ssize_t room) except -1
    cdef int grow(self) except -1
    cdef int end(self, bint valid) except -1
    cpdef int add_null(self) except -1
    cpdef int rollback(self, Py_ssize_t count) except -1

cdef class StructBuilder(Builder):
    cdef readonly list fields
    @cython.locals(one=Builder)
    cpdef int reset(self, Py_ssize_t room) except -1
    cdef int add(self) except -1
    @cython.locals(one=Builder)
    cpdef int add_null(self) except -1
    @cython.locals(one=Builder)
    cpdef int rollback(self, Py_ssize_t count) except -1

cdef class UnionBuilder(Builder):
    cdef readonly bytearray data, offsets
    cdef Target kinds
    cdef int[::1] rows, counts
    cdef readonly list branches
    @cython.locals(one=Builder)
    cpdef int reset(self, Py_ssize_t room) except -1
    cdef int grow(self) except -1
    cdef int add(self, int kind) except -1
    @cython.locals(one=Builder)
    cpdef int add_null(self) except -1
    @cython.locals(one=Builder, row=Py_ssize_t, kind=int)
    cpdef int rollback(self, Py_ssize_t count) except -1

cdef class Action:
    cdef int read(self, Cursor cursor) except -1

cdef class ErrorAction(Action):
    cdef object message
    cdef int read(self, Cursor cursor) except -1

@cython.final
cdef class IdReader:
    cdef BinaryColumn column, headers
    cdef Source data, header_data, header
    cdef bytes name
    cdef bint has_indexes, in_header
    cdef Py_ssize_t start, stop, position
    @cython.locals(size=Py_ssize_t)
    cdef bint find(self, Py_ssize_t row) except -1
    @cython.locals(position=Py_ssize_t, count=cython.longlong)
    cdef Py_ssize_t key_size(self, Source source, Py_ssize_t start, Py_ssize_t end) except -1
    @cython.locals(
        headers=BinaryColumn, position=Py_ssize_t, end=Py_ssize_t, count=cython.longlong, size=cython.longlong, is_wanted=cython.bint,
        index=Py_ssize_t,
    )
    cdef bint find_header(self, Py_ssize_t row) except -1
    cdef bytes key(self)
    @cython.locals(index=Py_ssize_t, source=Source)
    cdef bint is_equal(self, Py_ssize_t start, Py_ssize_t stop, bint in_header) except -1

cdef bint is_null(BinaryColumn column, Py_ssize_t row) except -1

@cython.locals(row=Py_ssize_t, start=Py_ssize_t, stop=Py_ssize_t, in_header=cython.bint)
cpdef set find_keys(IdReader ids)

@cython.locals(
    column=BinaryColumn, cursor=Cursor, row=Py_ssize_t, start=Py_ssize_t, stop=Py_ssize_t, in_header=cython.bint, action=Action,
)
cpdef int read_column(IdReader ids, Builder builder, dict actions, dict errors) except -1
