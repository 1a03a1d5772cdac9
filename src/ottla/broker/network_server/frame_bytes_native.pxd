# frame_bytes.py in C; see there. The compiler puts these into the modules that call them.
from cpython.buffer cimport Py_buffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memcmp

from ottla.records.native cimport Source, Target

cdef extern from "Python.h":
    Py_buffer* PyMemoryView_GET_BUFFER(object view)

cdef inline Source begin_of(memoryview frame) noexcept:
    # The view has its buffer already: to ask for it once more costs as much as all that is read here.
    return <Source> PyMemoryView_GET_BUFFER(frame).buf

cdef inline bytes copy_of(Source octets, Py_ssize_t start, Py_ssize_t stop):
    return PyBytes_FromStringAndSize(<const char*> octets + start, stop - start)

cdef inline bint is_same(Source octets, Py_ssize_t start, Py_ssize_t stop, bytes name) noexcept:
    return stop - start == len(name) and memcmp(octets + start, <const char*> name, stop - start) == 0

cdef inline bint is_ascii(Source octets, Py_ssize_t start, Py_ssize_t stop) noexcept:
    cdef Py_ssize_t at
    for at in range(start, stop):
        if octets[at] >= 0x80:
            return False
    return True

cdef inline Py_ssize_t put_uvarint(Target out, Py_ssize_t at, Py_ssize_t value) noexcept:
    while value >= 0x80:
        out[at] = <unsigned char> (value & 0x7F | 0x80)
        value >>= 7
        at += 1
    out[at] = <unsigned char> value
    return at + 1
