"""Run a command beside a FUSE mount that never answers. Run as a script, by root.

    deadmount.py hung|gone FOLDER COMMAND...

`hung`: nobody reads the mount's requests, so whoever touches it sleeps until killed, as with a
server that is gone. `gone`: its daemon has ended, and every touch is an I/O error. The mount lies
in a mount namespace of this process alone: however this process ends, the mount ends with it.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

_NEW_MOUNT_NAMESPACE = 0x00020000
_PRIVATE_ALL_BELOW = (1 << 18) | 16384
_LAZILY = 2

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Mount, run the command, and return its exit status."""
    state, folder, *command = sys.argv[1:]
    _check(_libc.unshare(_NEW_MOUNT_NAMESPACE))
    _check(_libc.mount(b"none", b"/", None, ctypes.c_ulong(_PRIVATE_ALL_BELOW), None))
    # The command does not inherit it: Python closes descriptors on exec.
    connection = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={connection},rootmode=40000,user_id=0,group_id=0".encode()
    path = os.fsencode(folder)
    _check(_libc.mount(b"dead", path, b"fuse", ctypes.c_ulong(0), options))
    try:
        if state == "gone":
            os.close(connection)
        return subprocess.run(command, stdin=subprocess.DEVNULL).returncode
    finally:
        if state == "hung":
            os.close(connection)  # wakes whoever still waits
        _check(_libc.umount2(path, _LAZILY))


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    sys.exit(main())
