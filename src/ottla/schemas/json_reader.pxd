# C types for json_reader.py.
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
    ListBuilder,
    LongBuilder,
    StructBuilder,
)

cdef Py_ssize_t MAX_DEPTH
cdef int MAX_DIGITS, MAX_LONG_DIGITS, MAX_POWER
cdef long long MAX_EXACT
cdef double[::1] POWERS
cdef int SPACE, QUOTE, COMMA, COLON, BACKSLASH, MINUS, PLUS, DOT, ZERO, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT
cdef int LOWER_A, LOWER_B, LOWER_E, LOWER_F, LOWER_N, LOWER_R, LOWER_T, LOWER_U, SLASH

@cython.locals(octet=int)
cdef int peek(Cursor cursor) except -1
@cython.locals(octet=int)
cdef object malformed_error(Cursor cursor)
@cython.locals(octet=int)
cdef object mismatch_error(Cursor cursor, path, wanted)
@cython.locals(octet=int)
cdef int skip_literal(Cursor cursor, bytes word) except -1
@cython.locals(has_escapes=cython.bint, position=Py_ssize_t, octet=int)
cdef bint skip_string(Cursor cursor) except -1
@cython.locals(octet=int)
cdef Py_ssize_t skip_escape(Cursor cursor, Py_ssize_t position) except -1
cdef bytes unescape(Cursor cursor, Py_ssize_t start)
@cython.locals(start=Py_ssize_t)
cdef Py_ssize_t skip_digits(Cursor cursor) except -1

@cython.locals(first=Py_ssize_t)
cdef Py_ssize_t skip_integer(Cursor cursor) except -1
cdef bint begins_fraction(Cursor cursor) except -1
cdef bint begins_exponent(Cursor cursor) except -1
@cython.locals(octet=int, is_negative=cython.bint)
cdef bint skip_exponent_sign(Cursor cursor) except -1
cdef int skip_number(Cursor cursor) except -1

@cython.final
cdef class Number:
    cdef Py_ssize_t start, digits
    cdef long long mantissa, power
    cdef bint is_negative, is_whole
    @cython.locals(first=Py_ssize_t)
    cdef int scan(self, Cursor cursor) except -1
    @cython.locals(position=Py_ssize_t)
    cdef int add_digits(self, Cursor cursor, Py_ssize_t first) except -1
    @cython.locals(is_negative=cython.bint, first=Py_ssize_t, exponent=cython.longlong, position=Py_ssize_t)
    cdef int scan_exponent(self, Cursor cursor) except -1
    @cython.locals(value=double)
    cdef double as_double(self, Cursor cursor) except? -1
    cdef long long as_long(self, Cursor cursor, path) except *

cdef bint begin_items(Cursor cursor, int close) except -1
@cython.locals(octet=int)
cdef bint next_item(Cursor cursor, int close) except -1
cdef int check_name(Cursor cursor) except -1
cdef int skip_colon(Cursor cursor) except -1

@cython.locals(octet=int)
cdef int skip_value(Cursor cursor) except -1
@cython.locals(close=int, has_more=cython.bint)
cdef int skip_items(Cursor cursor, bint is_object) except -1

cdef class ValueAction(Action):
    cdef Builder builder
    cdef object path
    @cython.locals(octet=int)
    cdef int read(self, Cursor cursor) except -1
    cdef int read_value(self, Cursor cursor, int octet) except -1

cdef class DocumentAction(Action):
    cdef Action value
    @cython.locals(octet=int)
    cdef int read(self, Cursor cursor) except -1

cdef class BooleanAction(ValueAction):
    @cython.locals(builder=BooleanBuilder)
    cdef int read_value(self, Cursor cursor, int octet) except -1

cdef class LongAction(ValueAction):
    cdef Number number
    @cython.locals(builder=LongBuilder)
    cdef int read_value(self, Cursor cursor, int octet) except -1

cdef class DoubleAction(ValueAction):
    cdef Number number
    cdef double[::1] value
    cdef unsigned char[::1] octets
    @cython.locals(builder=FixedBuilder)
    cdef int read_value(self, Cursor cursor, int octet) except -1

cdef class StringAction(ValueAction):
    cdef int read_value(self, Cursor cursor, int octet) except -1

@cython.locals(start=Py_ssize_t, text=bytes)
cdef int add_string(Cursor cursor, BytesBuilder builder) except -1

cdef class TextAction(ValueAction):
    @cython.locals(builder=BytesBuilder, start=Py_ssize_t)
    cdef int read_value(self, Cursor cursor, int octet) except -1

cdef class ListAction(ValueAction):
    cdef Action item
    @cython.locals(builder=ListBuilder, has_more=cython.bint)
    cdef int read_value(self, Cursor cursor, int octet) except -1

cdef class MapAction(ValueAction):
    cdef StructBuilder entry
    cdef BytesBuilder key
    cdef Action value
    @cython.locals(builder=ListBuilder, has_more=cython.bint)
    cdef int read_value(self, Cursor cursor, int octet) except -1

cdef class ObjectAction(ValueAction):
    cdef list actions, builders
    cdef const unsigned char[::1] names
    cdef Source name_data
    cdef int[::1] bounds
    cdef dict numbers
    cdef Py_ssize_t count
    cdef long long round
    cdef long long[::1] rounds
    @cython.locals(builder=StructBuilder, expected=Py_ssize_t, number=Py_ssize_t, has_more=cython.bint)
    cdef int read_value(self, Cursor cursor, int octet) except -1
    @cython.locals(column=Builder, action=Action)
    cdef int read_property(self, Cursor cursor, Py_ssize_t number, Py_ssize_t count) except -1
    @cython.locals(number=Py_ssize_t, column=Builder)
    cdef int add_absent(self) except -1
    @cython.locals(start=Py_ssize_t, size=Py_ssize_t, index=Py_ssize_t, first=Py_ssize_t, text=bytes)
    cdef Py_ssize_t find_property(self, Cursor cursor, Py_ssize_t expected) except? -2
