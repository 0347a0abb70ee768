"""A network of its own for servers that will not serve on 127.0.0.1; only inside, and only lo."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

ADDRESS = "10.77.0.1"
_NUMBERS = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network namespace whose loopback interface also has the address 10.77.0.1."""

    name: str

    def inside(self, *command: str) -> list[str]:
        """`command`, run inside. It keeps our mounts, so what it mounts is seen from outside."""
        return ["nsenter", f"--net=/run/netns/{self.name}", *command]

    def received_bytes(self) -> int:
        """Whatever was sent inside was also received: headers and acknowledgements are in it."""
        (link,) = json.loads(_run("ip", "-json", "-stats", "-n", self.name, "link", "show", "lo"))
        return int(link["stats64"]["rx"]["bytes"])


def why_not() -> str | None:
    """What is missing for a network namespace here; None when nothing is."""
    if os.geteuid() != 0:
        return "needs root: network namespaces"
    missing = [tool for tool in ("ip", "nsenter", "unshare") if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True).returncode != 0:
        return "root may not make namespaces here"
    return None


@contextlib.contextmanager
def network() -> Iterator[Network]:
    """A new network namespace; where that cannot be, the test is skipped with the reason."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    name = f"ioprof-test-{os.getpid()}-{next(_NUMBERS)}"
    _run("ip", "netns", "add", name)
    try:
        _run("ip", "-n", name, "address", "add", f"{ADDRESS}/32", "dev", "lo")
        _run("ip", "-n", name, "link", "set", "lo", "up")
        yield Network(name=name)
    finally:
        _run("ip", "netns", "delete", name)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
