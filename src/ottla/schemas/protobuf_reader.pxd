# C types for protobuf_reader.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.native cimport Source
from ottla.schemas.column_reader cimport (
    Action,
    BooleanBuilder,
    Builder,
    BytesBuilder,
    Cursor,
    FixedBuilder,
    IntBuilder,
    ListBuilder,
    LongBuilder,
    StructBuilder,
)

cdef int VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32
cdef Py_ssize_t MAX_DEPTH, DIRECT_NUMBERS
cdef long long MAX_SECONDS
cdef bytes ZEROS

@cython.locals(value=cython.longlong)
cdef long long read_unsigned(Cursor cursor) except *
cdef int skip_field(Cursor cursor, int wire) except -1
@cython.locals(wire=int)
cdef int skip_group(Cursor cursor) except -1
@cython.locals(size=cython.longlong)
cdef Py_ssize_t read_size(Cursor cursor) except -1

cdef class FieldAction(Action):
    cdef Builder builder
    cdef int wire
    cdef Source zeros
    cdef int add_zero(self) except -1

cdef class BooleanAction(FieldAction):
    @cython.locals(builder=BooleanBuilder)
    cdef int read(self, Cursor cursor) except -1
    @cython.locals(builder=BooleanBuilder)
    cdef int add_zero(self) except -1

cdef class IntAction(FieldAction):
    cdef bint is_zigzag
    @cython.locals(builder=IntBuilder, value=cython.longlong)
    cdef int read(self, Cursor cursor) except -1
    @cython.locals(builder=IntBuilder)
    cdef int add_zero(self) except -1

cdef class LongAction(FieldAction):
    cdef bint is_zigzag
    @cython.locals(builder=LongBuilder)
    cdef int read(self, Cursor cursor) except -1
    @cython.locals(builder=LongBuilder)
    cdef int add_zero(self) except -1

cdef class FixedAction(FieldAction):
    @cython.locals(builder=FixedBuilder)
    cdef int read(self, Cursor cursor) except -1
    @cython.locals(builder=FixedBuilder)
    cdef int add_zero(self) except -1

cdef class BytesAction(FieldAction):
    @cython.locals(builder=BytesBuilder, size=Py_ssize_t)
    cdef int read(self, Cursor cursor) except -1
    @cython.locals(builder=BytesBuilder)
    cdef int add_zero(self) except -1

cdef class EnumAction(FieldAction):
    cdef readonly list symbols
    cdef dict rows
    @cython.locals(value=cython.longlong)
    cdef int read(self, Cursor cursor) except -1
    @cython.locals(builder=IntBuilder)
    cdef int add(self, long long value) except -1
    cdef int add_zero(self) except -1

cdef class TextAction(FieldAction):
    cdef object convert
    @cython.locals(builder=BytesBuilder, size=Py_ssize_t, start=Py_ssize_t, text=bytes)
    cdef int read(self, Cursor cursor) except -1
    @cython.locals(builder=BytesBuilder, text=bytes)
    cdef int add_zero(self) except -1

cdef class MomentAction(FieldAction):
    @cython.locals(
        builder=LongBuilder, seconds=cython.longlong, nanos=cython.longlong, end=Py_ssize_t, outer=Py_ssize_t, tag=cython.longlong,
    )
    cdef int read(self, Cursor cursor) except -1
    @cython.locals(builder=LongBuilder)
    cdef int add_zero(self) except -1

@cython.final
cdef class Field:
    cdef FieldAction action
    cdef Builder column
    cdef ListBuilder repeated
    cdef bint is_repeated, fills, is_message
    cdef int oneof
    @cython.locals(end=Py_ssize_t, outer=Py_ssize_t)
    cdef bint add_items(self, Cursor cursor, int wire) except -1
    cdef int add_absent(self) except -1

cdef class MessageAction(FieldAction):
    cdef StructBuilder struct
    cdef list fields
    cdef Py_ssize_t count
    cdef dict rows, joined
    cdef int[::1] numbers
    cdef long long[::1] starts
    @cython.locals(end=Py_ssize_t, outer=Py_ssize_t)
    cdef int read(self, Cursor cursor) except -1
    cdef int add_zero(self) except -1
    @cython.locals(row=Py_ssize_t, tag=cython.longlong, number=cython.longlong)
    cdef int read_fields(self, Cursor cursor) except -1
    cdef Py_ssize_t find_row(self, long long number) except? -2
    @cython.locals(field=Field, start=Py_ssize_t)
    cdef bint read_field(self, Cursor cursor, Py_ssize_t row, int wire) except -1
    @cython.locals(other=Py_ssize_t, field=Field)
    cdef int clear_others(self, Py_ssize_t row, int oneof) except -1
    @cython.locals(end=Py_ssize_t, parts=list)
    cdef int join(self, Cursor cursor, Py_ssize_t row, Py_ssize_t start) except -1
    @cython.locals(size=Py_ssize_t)
    cdef bytes copy_message(self, Cursor cursor, Py_ssize_t start)
    @cython.locals(end=Py_ssize_t, row=Py_ssize_t, field=Field, data=bytes)
    cdef int add_singular(self, Cursor cursor) except -1

cdef class RootAction(Action):
    cdef MessageAction message
    cdef int read(self, Cursor cursor) except -1
