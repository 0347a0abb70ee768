from pathlib import Path

from ioprof.sources.nfs import FACTS
from ioprof.sources.nfspaths import parse_paths
from ioprof.sources.nfsstats import find_header, parse_mount, parse_rpc
from tests.fuzz.mutate import survives

DATA = Path(__file__).parents[1] / "data" / "nfs"
TCP = (DATA / "mountstats_v4_tcp_nconnect4.txt").read_bytes()
RDMA = (DATA / "mountstats_v3_rdma.txt").read_bytes()
VAST = (DATA / "vast_debugfs_rpc_clnt_stats.txt").read_bytes()
RPC = b"rpc 5000 3 5001\nproc3 22 0 1 0 2 3 0 4096 7\nproc4 3 1 12288 5\n"


def names(source):
    return {counter for fact in FACTS if fact.source == source for counter in fact.counters}


def parse(text):
    for path, source in (("/mnt/nfs4", "192.0.2.10:/export"), ("/mnt/vast", "192.0.2.101:/")):
        header = find_header(text, path=path, source=source)
        stats = None if header is None else parse_mount(text, header=header)
        if stats is not None:
            return stats.app() | stats.wire() | stats.xprt()
    return {}


def test_any_mount_is_survived():
    allowed = names("nfs.app") | names("nfs.wire") | names("nfs.xprt")
    survives(parse, [TCP, RDMA], keys=dict.keys, allowed=allowed)


def test_any_table_of_all_mounts_is_survived():
    survives(
        lambda text: parse_rpc(text, version=4), [RPC], keys=dict.keys, allowed=names("nfs.rpc")
    )


def test_any_list_of_paths_is_survived():
    survives(
        parse_paths,
        [VAST],
        keys=lambda made: {name for one in made for name in one.counters},
        allowed=names("nfs.path"),
    )
