"""How much of a file is in this node's page cache.

`cachestat(2)`, number 451 on every architecture, counts cached pages since Linux 6.5; before that
`mincore(2)` over a mapping does. Neither reads the file. Both are closed to a reader who neither
owns the file nor may write it: cachestat answers EPERM on kernels that have that hardening, mincore
answers "all resident", which is worse than nothing; so ownership is checked before mincore is
believed. Of a file on an overlay cachestat sees only the overlay's own pages, of which there are
none, and answers 0 however much of the file below is cached (Linux 6.18); mincore sees the file
below.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from typing import Literal

import msgspec

PAGE_BYTES = mmap.PAGESIZE
_CACHESTAT = 451
_OVERLAY = 0x794C7630  # OVERLAYFS_SUPER_MAGIC in linux/magic.h
_UNMAPPED_USER = 65534
_CLOSED = "the kernel tells page residency only to the owner of a file or who may write it"
_libc = ctypes.CDLL(None, use_errno=True)
_fstatfs = _libc.fstatfs

Method = Literal["cachestat", "mincore"]


class _Range(ctypes.Structure):
    _fields_ = (("off", ctypes.c_uint64), ("len", ctypes.c_uint64))


class _Cachestat(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in (
            "nr_cache",
            "nr_dirty",
            "nr_writeback",
            "nr_evicted",
            "nr_recently_evicted",
        )
    )


class Pages(msgspec.Struct, frozen=True, kw_only=True):
    """Pages of one file: `resident` of `total`; `resident` is None where the kernel will not say,
    with a `reason`."""

    resident: int | None
    total: int
    method: Method
    reason: str | None = None


def resident_pages(descriptor: int, length: int) -> Pages:
    """Cached pages of an open file of `length` bytes."""
    total = -(-length // PAGE_BYTES)
    if total == 0:
        return Pages(resident=0, total=0, method="cachestat")
    found = None if _is_on_overlay(descriptor) else _by_cachestat(descriptor, total)
    return found if found is not None else _by_mincore(descriptor, length, total)


def _is_on_overlay(descriptor: int) -> bool:
    # The type is the first word of struct statfs, which has 120 bytes on 64-bit machines.
    found = (ctypes.c_long * 32)()
    return bool(_fstatfs(ctypes.c_int(descriptor), found) == 0 and found[0] == _OVERLAY)


def _by_cachestat(descriptor: int, total: int) -> Pages | None:
    """Pages by cachestat; None when this kernel has no such call."""
    span = _Range(0, 0)  # length 0: to the end of the file
    out = _Cachestat()
    arguments = (
        ctypes.c_long(_CACHESTAT),
        ctypes.c_uint(descriptor),
        ctypes.byref(span),
        ctypes.byref(out),
        ctypes.c_uint(0),
    )
    if _libc.syscall(*arguments) == 0:
        # Large folios reach past the end of a file; a share above 1 would be nonsense.
        return Pages(resident=min(int(out.nr_cache), total), total=total, method="cachestat")
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EOPNOTSUPP):
        return None
    if number == errno.EPERM and _may_know(descriptor):
        # Not the kernel's word but a container's filter, which refuses calls it does not know.
        return None
    reason = _CLOSED if number == errno.EPERM else f"cachestat failed: {os.strerror(number)}"
    return Pages(resident=None, total=total, method="cachestat", reason=reason)


def _may_know(descriptor: int) -> bool:
    """Whether the kernel tells this process which of the file's pages are cached: it owns the file,
    may write it, or is root over the owner."""
    owner = os.fstat(descriptor).st_uid
    if owner == os.geteuid() or os.access(
        f"/proc/self/fd/{descriptor}", os.W_OK, effective_ids=True
    ):
        return True
    # In a user namespace root is nobody to files of users whom the namespace does not map.
    return os.geteuid() == 0 and owner != _UNMAPPED_USER


def _by_mincore(descriptor: int, length: int, total: int) -> Pages:
    if not _may_know(descriptor):
        return Pages(resident=None, total=total, method="mincore", reason=_CLOSED)
    try:
        return _mapped(descriptor, length, total)
    except (OSError, ValueError) as error:
        # The file shrank meanwhile, or its filesystem maps nothing.
        reason = f"mincore failed: {error}"
        return Pages(resident=None, total=total, method="mincore", reason=reason)


def _mapped(descriptor: int, length: int, total: int) -> Pages:
    """Pages by mincore over a private mapping that is never touched. It is writable only because
    its address cannot be taken otherwise; that needs no right to write the file."""
    vector = (ctypes.c_ubyte * total)()
    with mmap.mmap(
        descriptor, length, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_WRITE | mmap.PROT_READ
    ) as mapping:
        anchor = ctypes.c_char.from_buffer(mapping)
        try:
            status = _libc.mincore(
                ctypes.c_void_p(ctypes.addressof(anchor)), ctypes.c_size_t(length), vector
            )
        finally:
            del anchor  # the mapping cannot be closed while something points into it
    if status != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return Pages(resident=sum(byte & 1 for byte in vector), total=total, method="mincore")
