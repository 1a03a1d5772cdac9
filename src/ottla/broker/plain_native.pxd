# plain_bytes.py in C; see there. The compiler puts these into the modules that call them.
from ottla.records.native cimport Source, Target

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
