"""The storage ceiling, measured by a real fio on real files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ioprof.fio.ceiling import measure_ceiling
from ioprof.record.ceiling import StorageCeiling
from ioprof.record.filelist import FileList
from ioprof.record.store import read_json
from ioprof.sources.blockstack import find_stack
from ioprof.sources.mount import find_mount
from tests.integration.throttle import device_of, inside, throttled_group, unavailable

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio: apt-get install fio"),
]

FILES = 400
FILE_BYTES = 150_000


def file_list(folder: Path) -> FileList:
    names = sorted(path.name for path in folder.iterdir())
    return FileList.of(
        folder,
        paths=[os.fsencode(name) for name in names],
        stored_bytes=[(folder / name).stat().st_size for name in names],
        labels=[0] * len(names),
        classes=(b"all",),
    )


def fill(folder: Path) -> Path:
    folder.mkdir()
    for number in range(FILES):
        # Names as people give them; random bytes, so that no layer can leave them out.
        (folder / f"{number}: a, b={number}.JPEG").write_bytes(os.urandom(FILE_BYTES))
    return folder


@pytest.fixture(scope="module")
def data(checkout_data: Path) -> Iterator[Path]:
    folder = fill(checkout_data / f"fio-{os.getpid()}")
    os.sync()
    yield folder
    shutil.rmtree(folder)


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        path.name: (path.stat().st_mtime_ns, zlib.crc32(path.read_bytes()))
        for path in folder.iterdir()
    }


def test_what_fio_read_is_what_the_devices_delivered(data, tmp_path):
    stack = find_stack(find_mount(data))
    if not stack.top:
        pytest.skip(f"no block device under {data}: {stack.reason}")
    before = contents(data)
    found = measure_ceiling(file_list(data), out=tmp_path, jobs=2, duration_s=2.0, stack=stack)
    assert found.reason is None, found
    assert found.read_bytes_per_s is not None
    assert found.fio_read_bytes is not None
    assert found.storage_read_bytes is not None
    # 150,000 bytes hold one request of 36 x 4,096; other readers may use the device as well.
    assert found.block_bytes == 147_456
    assert found.storage_read_bytes >= 0.95 * found.fio_read_bytes
    assert contents(data) == before


def test_a_file_that_vanished_after_the_survey_does_not_end_the_measurement(data, tmp_path):
    files = file_list(data)
    gone = data / "0: a, b=0.JPEG"
    moved = gone.rename(tmp_path / "moved")
    try:
        found = measure_ceiling(files, out=tmp_path / "out", jobs=1, duration_s=1.5, stack=None)
    finally:
        moved.rename(gone)
    assert found.read_bytes_per_s is not None, found.reason


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs /dev/shm")
def test_files_in_memory_give_no_ceiling(tmp_path):
    folder = Path(f"/dev/shm/ioprof-fio-{os.getpid()}")
    folder.mkdir()
    try:
        (folder / "a").write_bytes(bytes(100_000))
        found = measure_ceiling(file_list(folder), out=tmp_path, jobs=1, duration_s=1.0, stack=None)
    finally:
        shutil.rmtree(folder)
    assert found.read_bytes_per_s is None
    assert found.reason is not None
    assert "memory" in found.reason


MEASURE = """
import sys
from pathlib import Path
from tests.integration.test_fio_ceiling import file_list
from ioprof.fio.ceiling import measure_ceiling
from ioprof.sources.blockstack import find_stack
from ioprof.sources.mount import find_mount
data, out = Path(sys.argv[1]), Path(sys.argv[2])
stack = find_stack(find_mount(data))
measure_ceiling(file_list(data), out=out, jobs=4, duration_s=5.0, stack=stack)
"""


@pytest.mark.root
@pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))
def test_storage_that_is_throttled_to_20_mb_per_s_is_measured_at_that(data, tmp_path):
    with throttled_group(device_of(data), read_bytes_per_s=20_000_000) as group:
        subprocess.run(
            inside(group, [sys.executable, "-c", MEASURE, str(data), str(tmp_path)]),
            check=True,
            cwd=Path(__file__).parents[2],
            timeout=120,
        )
    found = read_json(tmp_path / "ceiling.json", StorageCeiling)
    assert found.reason is None
    assert found.read_bytes_per_s == pytest.approx(20e6, rel=0.05)
