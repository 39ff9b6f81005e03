"""Moves the memory of a process into huge pages, so that forking it is cheap.

The product forks for every program that it starts, and a fork copies the page table of the whole
process: in a process that has collected all tests, it took longer than most of these programs.
With pages of two megabytes instead of four kilobytes the table is small.
"""

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

PAGE_BYTES = 2 << 20
MADV_COLLAPSE = 25
"""Of Linux 6.1 and later; older ones refuse it, and everything only takes longer."""


def use_huge_pages() -> None:
    """Collapses all memory that this process has written so far; does nothing if it cannot."""
    if sys.platform != "linux":
        return
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for address in _pages():
        madvise(address, PAGE_BYTES, MADV_COLLAPSE)


def _pages() -> Iterator[int]:
    """Yields the address of every huge page that fits into the private memory of this process."""
    for line in Path("/proc/self/maps").read_text("utf-8").splitlines():
        addresses, permissions, _offset, _device, inode, *name = line.split()
        if permissions == "rw-p" and inode == "0" and name in ([], ["[heap]"]):
            begin, end = (int(address, 16) for address in addresses.split("-"))
            first = -(-begin // PAGE_BYTES) * PAGE_BYTES
            yield from range(first, end - PAGE_BYTES + 1, PAGE_BYTES)
