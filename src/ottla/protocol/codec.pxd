# C types for codec.py. Names must match; anything absent here stays a Python object.
cimport cython
from libc.stdint cimport int64_t

cdef int INT8, INT16, INT32, INT64, UINT16, UINT32, BOOL, STRING, BYTES, RECORDS, ARRAY, STRUCT, UUID, FLOAT64, ABSENT
cdef int64_t BIG_BYTES, LONGEST_STRING, SURE_STRING, LONGEST

@cython.final
cdef class Step:
    cdef public int kind, width
    cdef public object name, item, default
    cdef public bint nullable, ignorable
    cdef public int64_t least, most, least_bytes

@cython.final
cdef class Plan:
    cdef public object make
    cdef public list steps, written, refused
    cdef public dict tags
    cdef public bint flexible
    cdef public int version

@cython.final
cdef class Reader:
    cdef object source
    cdef const unsigned char[::1] octets
    cdef readonly Py_ssize_t position
    cdef Py_ssize_t end

    @cython.locals(start=Py_ssize_t)
    cdef Py_ssize_t take(self, int64_t size) except -1
    @cython.locals(start=Py_ssize_t, value=int64_t, i=Py_ssize_t)
    cdef int64_t integer(self, int width) except? -1
    @cython.locals(value=int64_t, octet=int64_t, shift=int)
    cdef int64_t uvarint(self) except? -1
    @cython.locals(kind=int, start=Py_ssize_t)
    cdef object value(self, Step step, bint flexible)
    @cython.locals(kind=int, size=int64_t, start=Py_ssize_t)
    cdef object sized(self, Step step, bint flexible)
    @cython.locals(items=list)
    cdef object array(self, Step item, int64_t size, bint flexible)
    @cython.locals(values=list, step=Step, count=int64_t)
    cdef object structure(self, Plan plan)
    @cython.locals(start=Py_ssize_t, tag=int64_t, size=int64_t)
    cdef object tagged(self, Plan plan, list values, int64_t count)
    @cython.locals(stop=Py_ssize_t, end=Py_ssize_t)
    cdef object tagged_value(self, Step step, Py_ssize_t start)

@cython.final
cdef class Writer:
    cdef list parts
    cdef bytearray out

    @cython.locals(out=bytearray)
    cdef int integer(self, int64_t value, int width) except -1
    @cython.locals(number=int64_t)
    cdef int number(self, Step step, object value) except -1
    @cython.locals(out=bytearray)
    cdef int uvarint(self, int64_t value) except -1
    cdef int length(self, int64_t size, int kind, bint flexible) except -1
    @cython.locals(kind=int)
    cdef int value(self, Step step, object value, bint flexible) except -1
    cdef int optional(self, Step step, object value) except -1
    @cython.locals(kind=int)
    cdef int sized(self, Step step, object value, bint flexible) except -1
    cdef int part(self, object part) except -1
    @cython.locals(index=Py_ssize_t)
    cdef int array(self, Step item, object values, bint flexible) except -1
    @cython.locals(step=Step)
    cdef int structure(self, Plan plan, object message) except -1
    @cython.locals(step=Step, present=list)
    cdef int tagged(self, Plan plan, object message) except -1

cdef bint differs(object value, object default) except -1
