# C types for avro_reader.py.
cimport cython

cimport ottla.records.native as raw
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
    UnionBuilder,
)

cdef Py_ssize_t MAX_DEPTH

cdef class NullAction(Action):
    cdef Builder builder
    cdef int read(self, Cursor cursor) except -1

cdef class BooleanAction(Action):
    cdef BooleanBuilder builder
    @cython.locals(position=Py_ssize_t)
    cdef int read(self, Cursor cursor) except -1

cdef class IntAction(Action):
    cdef IntBuilder builder
    @cython.locals(value=cython.longlong)
    cdef int read(self, Cursor cursor) except -1

cdef class LongAction(Action):
    cdef LongBuilder builder
    cdef int read(self, Cursor cursor) except -1

cdef class FixedAction(Action):
    cdef FixedBuilder builder
    cdef int read(self, Cursor cursor) except -1

cdef class PromotedAction(Action):
    cdef FixedBuilder builder
    cdef bint from_float
    cdef double[::1] wide
    cdef float[::1] narrow
    cdef unsigned char[::1] wide_octets, narrow_octets
    @cython.locals(position=Py_ssize_t, index=Py_ssize_t)
    cdef int read(self, Cursor cursor) except -1

cdef class BytesAction(Action):
    cdef BytesBuilder builder
    @cython.locals(size=Py_ssize_t)
    cdef int read(self, Cursor cursor) except -1

cdef class DecimalAction(Action):
    cdef FixedBuilder builder
    cdef Py_ssize_t size
    @cython.locals(size=Py_ssize_t)
    cdef int read(self, Cursor cursor) except -1

cdef class EnumAction(Action):
    cdef IntBuilder builder
    cdef list symbols
    cdef int[::1] mapping
    cdef long long count
    @cython.locals(number=cython.longlong)
    cdef int read(self, Cursor cursor) except -1

cdef class ListAction(Action):
    cdef ListBuilder builder
    cdef Action item
    cdef int read(self, Cursor cursor) except -1

@cython.locals(count=cython.longlong, before=Py_ssize_t)
cdef int read_blocks(Cursor cursor, Action item) except -1

cdef class RecordAction(Action):
    cdef StructBuilder builder
    cdef list actions
    cdef Py_ssize_t count
    @cython.locals(index=Py_ssize_t, action=Action)
    cdef int read(self, Cursor cursor) except -1

cdef class SequenceAction(Action):
    cdef list actions
    @cython.locals(action=Action)
    cdef int read(self, Cursor cursor) except -1

cdef class BranchAction(Action):
    cdef list branches
    cdef long long count
    @cython.locals(number=cython.longlong, action=Action)
    cdef int read(self, Cursor cursor) except -1

cdef class TaggedAction(Action):
    cdef UnionBuilder builder
    cdef int kind
    cdef Action value
    cdef int read(self, Cursor cursor) except -1

cdef class DefaultAction(Action):
    cdef Cursor cursor
    cdef Action value
    cdef int read(self, Cursor cursor) except -1

cdef class SkipNumber(Action):
    cdef int read(self, Cursor cursor) except -1

cdef class SkipFixed(Action):
    cdef Py_ssize_t size
    cdef int read(self, Cursor cursor) except -1

cdef class SkipBytes(Action):
    cdef int read(self, Cursor cursor) except -1

cdef class SkipBlocks(Action):
    cdef Action item
    cdef int read(self, Cursor cursor) except -1
