"""GlusterFS, MooseFS and sshfs with their servers on this machine, for as long as a test runs.

Each client is mounted so that the kernel may keep a file's pages when it is closed: by default it
drops them at the next open, and a second read is then served by the client's daemon.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration import netns
from tests.integration.loopfs import folder_on_disk, is_mounted, unmount
from tests.integration.netns import ADDRESS, Network, network
from tests.integration.servers import Apart, serving, serving_all, wait_until, written_bytes

_SFTP_SERVER = Path("/usr/lib/openssh/sftp-server")
_EMPTY_METADATA = Path("/var/lib/mfs/metadata.mfs.empty")
_GLUSTER_FOLDERS = ("/var/lib/glusterd", "/var/log/glusterfs")


@dataclass(frozen=True, kw_only=True)
class NetworkMount:
    """A mounted filesystem, and what its server has sent so far as others than its client count."""

    mountpoint: Path
    delivered_bytes: Callable[[], int]
    gluster: tuple[str, ...] = ()
    """How the server's own command is run from outside its namespaces."""


@contextlib.contextmanager
def sshfs() -> Iterator[NetworkMount]:
    """An sshfs that speaks with an sftp-server over a pair of sockets, without ssh."""
    _need("sshfs", str(_SFTP_SERVER))
    with folder_on_disk() as folder, contextlib.ExitStack() as stack:
        (folder / "served").mkdir()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            server = stack.enter_context(
                serving(
                    [str(_SFTP_SERVER), "-e", "-d", f"{folder}/served"],
                    log=folder / "server.log",
                    wire=ours.fileno(),
                )
            )
            command = ["sshfs", "-f", "-o", "passive,kernel_cache", ":", f"{folder}/mounted"]
            mountpoint = stack.enter_context(_client(command, folder=folder, wire=theirs.fileno()))
        yield NetworkMount(mountpoint=mountpoint, delivered_bytes=lambda: written_bytes(server))


@contextlib.contextmanager
def moosefs() -> Iterator[NetworkMount]:
    """A MooseFS of one master and one chunkserver."""
    _need("mfsmaster", "mfschunkserver", "mfsmount", str(_EMPTY_METADATA))
    with folder_on_disk() as folder, network() as net:
        master, chunkserver = _moosefs_settings(folder)
        shutil.copyfile(_EMPTY_METADATA, folder / "master" / "metadata.mfs")
        with (
            _moosefs_server("mfsmaster", master, net=net),
            _moosefs_server("mfschunkserver", chunkserver, net=net),
        ):
            client = ("mfsmount", "-f", "-c", "/dev/null", "-H", ADDRESS)
            command = net.inside(*client, "-o", "mfscachemode=YES", f"{folder}/mounted")
            with _client(command, folder=folder) as mountpoint:
                yield NetworkMount(mountpoint=mountpoint, delivered_bytes=net.received_bytes)


def _moosefs_settings(folder: Path) -> tuple[Path, Path]:
    """Files of settings for the master and the chunkserver, with all that they name."""
    for name in ("master", "chunkserver", "disk"):
        (folder / name).mkdir()
    (folder / "exports").write_text("* / rw,alldirs,maproot=0:0\n")
    (folder / "topology").write_text("")
    (folder / "disks").write_text(f"{folder}/disk\n")
    whose = "WORKING_USER = root\nWORKING_GROUP = root\n"
    (folder / "master.cfg").write_text(
        f"{whose}DATA_PATH = {folder}/master\n"
        f"EXPORTS_FILENAME = {folder}/exports\nTOPOLOGY_FILENAME = {folder}/topology\n"
        + "".join(f"{who}_LISTEN_HOST = {ADDRESS}\n" for who in ("MATOML", "MATOCS", "MATOCL"))
    )
    (folder / "chunkserver.cfg").write_text(
        f"{whose}DATA_PATH = {folder}/chunkserver\nHDD_CONF_FILENAME = {folder}/disks\n"
        f"MASTER_HOST = {ADDRESS}\nCSSERV_LISTEN_HOST = {ADDRESS}\nBIND_HOST = {ADDRESS}\n"
        "MASTER_RECONNECTION_DELAY = 1\nHDD_LEAVE_SPACE_DEFAULT = 64MiB\n"
    )
    return folder / "master.cfg", folder / "chunkserver.cfg"


@contextlib.contextmanager
def _moosefs_server(program: str, settings: Path, *, net: Network) -> Iterator[None]:
    log = settings.with_suffix(".log")
    command = net.inside(program, "-f", "-n", "-c", str(settings), "start")
    with serving(command, log=log) as process:
        wait_until(
            lambda: "initialized properly" in log.read_text(), what=program, by=process, log=log
        )
        yield


@contextlib.contextmanager
def glusterfs(*, profiled: bool = False) -> Iterator[NetworkMount]:
    """A GlusterFS volume of one brick, whose client keeps nothing outside the page cache.

    Where it is `profiled`, the bricks count for who asks `gluster`.
    """
    _need("glusterd", "glusterfs", "gluster")
    with folder_on_disk() as folder, network() as net, _glusterd(folder, net) as gluster:
        gluster.order("volume", "create", "known", f"{ADDRESS}:{folder}/brick", "force")
        for cache in ("io-cache", "quick-read", "read-ahead", "stat-prefetch"):
            gluster.order("volume", "set", "known", f"performance.{cache}", "off")
        gluster.order("volume", "start", "known")
        if profiled:
            gluster.order("volume", "profile", "known", "start")
        client = ("glusterfs", "--no-daemon", "--fopen-keep-cache=true", f"--log-file={folder}/log")
        command = net.inside(
            *client, f"--volfile-server={ADDRESS}", "--volfile-id=known", f"{folder}/mounted"
        )
        with _client(command, folder=folder) as mountpoint:
            yield NetworkMount(
                mountpoint=mountpoint,
                delivered_bytes=net.received_bytes,
                gluster=gluster.command,
            )


class _Gluster:
    """The command `gluster`, beside the glusterd that it asks."""

    def __init__(self, glusterd: Apart) -> None:
        # By its path: a test may put something else called gluster on the PATH.
        program = shutil.which("gluster") or "gluster"
        self.command = tuple(glusterd.inside(program, "--mode=script"))

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run((*self.command, *words), capture_output=True, text=True, timeout=60)

    def order(self, *words: str) -> None:
        done = self.ask(*words)
        if done.returncode != 0:
            raise RuntimeError(f"gluster {' '.join(words)}: {done.stdout}{done.stderr}")


@contextlib.contextmanager
def _glusterd(folder: Path, net: Network) -> Iterator[_Gluster]:
    """A glusterd that keeps its state in `folder`."""
    (folder / "brick").mkdir()
    for name in _GLUSTER_FOLDERS:
        (folder / Path(name).name).mkdir()
    # In its own mounts alone: the machine's glusterd, and its sockets in /run, are not touched.
    script = " && ".join(
        [
            f"mkdir -p {' '.join(_GLUSTER_FOLDERS)}",
            *(f"mount --bind '{folder}/{Path(name).name}' {name}" for name in _GLUSTER_FOLDERS),
            "mount -t tmpfs tmpfs /run",
            f"exec glusterd --no-daemon '--log-file={folder}/glusterd.log'",
        ]
    )
    log = folder / "glusterd.log"
    with serving_all(net.inside("sh", "-c", script), log=log) as glusterd:
        gluster = _Gluster(glusterd)
        wait_until(
            lambda: gluster.ask("pool", "list").returncode == 0,
            what="glusterd",
            by=glusterd.process,
            log=log,
        )
        yield gluster


@contextlib.contextmanager
def _client(
    command: Sequence[str], *, folder: Path, wire: int = subprocess.DEVNULL
) -> Iterator[Path]:
    """A client in the foreground, its mount there, and unmounted in the end."""
    mountpoint = folder / "mounted"
    mountpoint.mkdir()
    log = folder / "client.log"
    with serving(command, log=log, wire=wire) as process:
        try:
            wait_until(lambda: is_mounted(mountpoint), what=command[0], by=process, log=log)
            yield mountpoint
        finally:
            if is_mounted(mountpoint):
                unmount(mountpoint)


def _need(*programs: str) -> None:
    """Skip the test where a program or the right to mount is missing."""
    reason = netns.why_not()
    if reason is None and not os.access("/dev/fuse", os.R_OK | os.W_OK):
        reason = "there is no /dev/fuse here"
    missing = [name for name in programs if shutil.which(name) is None and not Path(name).exists()]
    if reason is None and missing:
        reason = f"not installed: {', '.join(missing)}"
    if reason is not None:
        pytest.skip(reason)
