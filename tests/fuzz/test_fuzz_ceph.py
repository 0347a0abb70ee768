from pathlib import Path

from ioprof.sources import ceph, cephfuse
from tests.fuzz.mutate import survives

DATA = Path(__file__).parents[1] / "data" / "ceph"
KERNEL = [path.read_bytes() for path in sorted(DATA.glob("kernel_*.txt"))]
DUMP = (DATA / "ceph_fuse_perf_dump.json").read_bytes()
STATUS = (DATA / "ceph_fuse_status.json").read_bytes()


def names(found):
    return {*found.counters, *found.means, *found.caps}


def test_any_text_of_the_kernel_is_survived():
    told = {counter for fact in ceph.FACTS for counter in fact.counters}
    survives(ceph.parse, [*KERNEL, b"\n".join(KERNEL)], keys=names, allowed=told)


def test_any_answer_of_the_daemon_is_survived():
    told = {counter for fact in cephfuse.FACTS for counter in fact.counters}
    survives(
        cephfuse.parse,
        [DUMP, DUMP.replace(b"\n", b"")],
        errors=(ValueError,),
        keys=lambda dump: {*dump.wire, *dump.client},
        allowed=told,
    )
    survives(cephfuse.mount_point, [STATUS], errors=(ValueError,))
