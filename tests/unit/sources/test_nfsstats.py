"""What kernels print of NFS. Sums are worked out by hand from the texts."""

from pathlib import Path

import pytest

from ioprof.sources.nfsstats import find_header, parse_block, parse_mount, parse_rpc

DATA = Path(__file__).parents[2] / "data" / "nfs"
TCP = (DATA / "mountstats_v4_tcp_nconnect4.txt").read_bytes()
RDMA = (DATA / "mountstats_v3_rdma.txt").read_bytes()
TWO = (DATA / "mountstats_v41_two_connections.txt").read_bytes()


def stats(text, path, source):
    header = find_header(text, path=path, source=source)
    assert header is not None
    made = parse_mount(text, header=header)
    assert made is not None
    return made


def nfs4(text=TCP):
    return stats(text, "/mnt/nfs4", "192.0.2.10:/export")


def test_what_was_asked_for_is_buffered_and_direct_reads():
    assert nfs4().app() == {"requested_bytes_total": 11_811_160_064, "write_bytes_total": 0}


def test_what_came_from_the_server_and_how_long_it_took():
    assert nfs4().age_s == 3600
    assert nfs4().wire() == {
        "read_bytes_total": 12_884_901_888,
        "write_bytes_total": 0,
        "read_operations_total": 12_288,
        "write_operations_total": 0,
        "read_errors_operations_total": 0,
        "retransmits_total": 0,
        "metadata_operations_total": 2129,
        "metadata_time_seconds_total": pytest.approx(1.153),
        "read_queue_seconds_total": pytest.approx(0.310),
        "read_rtt_seconds_total": pytest.approx(79.386),
        "read_time_seconds_total": pytest.approx(80.102),
        "open_operations_total": 1281,
        "getattr_operations_total": 600,
        "lookup_operations_total": 226,
        "access_operations_total": 13,
        "readdir_operations_total": 9,
    }


def test_the_connections_of_nconnect_are_summed():
    assert len(nfs4().transports) == 4
    assert nfs4().xprt() == {
        "connect_operations_total": 4,
        "send_requests_total": 15_700,
        "receive_requests_total": 15_700,
        "bad_xid_requests_total": 0,
        "in_flight_requests_total": 20_500,
        "backlog_requests_total": 0,
        "rdma_reply_bytes_total": None,
    }


def test_sixteen_connections_are_sixteen_and_the_bytes_are_the_mounts():
    """prometheus/procfs#450, prometheus/node_exporter#3358: only the last line was kept."""
    line = b"\txprt:\ttcp 689 1 2 0 0 2826 2818 0 24955 0 10 0 22129\n"
    made = parse_block(b"\tbytes:\t1 2 3 4 5 6 7 8\n" + 16 * line)
    assert made.xprt()["send_requests_total"] == 45_216
    assert made.xprt()["receive_requests_total"] == 45_088
    assert made.wire()["read_bytes_total"] == 5


def test_version_3_over_rdma_has_no_opens_and_no_column_of_errors():
    made = stats(RDMA, "/mnt/vast", "192.0.2.101:/")
    wire = made.wire()
    assert made.app()["requested_bytes_total"] == 4_294_967_296
    assert wire["read_bytes_total"] == 4_294_967_296
    assert wire["read_operations_total"] == 4096
    assert wire["read_time_seconds_total"] == pytest.approx(9.9)
    assert wire["read_errors_operations_total"] is None
    assert wire["open_operations_total"] is None
    assert wire["readdir_operations_total"] == 1
    assert wire["metadata_operations_total"] == 16
    assert made.age_s == 120


def test_rdma_bytes_stand_where_the_kernel_prints_them():
    """The kernel prints total_rdma_reply before pullup_copy; some tables have them swapped."""
    xprt = stats(RDMA, "/mnt/vast", "192.0.2.101:/").xprt()
    assert xprt["rdma_reply_bytes_total"] == 4_294_967_296
    assert xprt["connect_operations_total"] == 1
    assert xprt["send_requests_total"] == 4120
    assert xprt["in_flight_requests_total"] == 4400


def test_operations_have_nine_numbers_from_linux_5_3_on():
    """prometheus/node_exporter#1642, prometheus/procfs#275: the whole file was refused."""
    made = stats(TWO, "/mnt/a", "srv:/e")
    assert made.operations[b"NULL"] == [1, 1, 0, 44, 24, 0, 0, 0, 0]
    assert made.wire()["read_errors_operations_total"] == 1
    assert made.wire()["retransmits_total"] == 2
    assert made.xprt()["send_requests_total"] == 2926


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("udp 740 1 881477 875055 5946 2888414103 286261", (None, 881_477, 875_055, 5946)),
        (
            "udp 740 1 881477 875055 5946 2888414103 286261 16 258752 2080886",
            (None, 881_477, 875_055, 5946),
        ),
        ("tcp 875 1 7 0 0 100 99 1 300 4", (7, 100, 99, 1)),
        ("tcp 875 1 7 0 0 100 99 1 300 4 16 8 9", (7, 100, 99, 1)),
        ("rdma 0 0 7 0 24 100 99 1 300 4 0 0 0 0 5 0 0 0 0 0 0 0", (7, 100, 99, 1)),
    ],
)
def test_transports_of_old_and_new_kernels(line, row):
    """prometheus/node_exporter#571 and #2749, prometheus/procfs#100: other widths were refused."""
    made = parse_block(f"\txprt:\t{line}\n".encode()).xprt()
    names = ("connect_operations_total", "send_requests_total", "receive_requests_total")
    assert (*(made[name] for name in names), made["bad_xid_requests_total"]) == row


def test_a_transport_that_we_do_not_know_makes_the_sums_unknown():
    made = parse_block(b"\txprt:\ttcp 1 1 1 0 0 5 5 0 0 0\n\txprt:\tquic 1 2 3\n")
    assert made.xprt()["send_requests_total"] is None
    assert len(made.transports) == 2


def test_a_time_that_an_old_kernel_let_go_below_zero_is_none():
    block = b"\tper-op statistics\n\tREAD: 10 10 0 1 1 18446744073709551600 40 46\n"
    wire = parse_block(block).wire()
    assert wire["read_queue_seconds_total"] is None
    assert wire["read_rtt_seconds_total"] == pytest.approx(0.040)
    assert wire["read_operations_total"] == 10


def test_reads_of_version_4_2_may_be_read_plus():
    block = b"\tper-op statistics\n\tREAD: 10 10 0 1 1 1 2 3 0\n\tREAD_PLUS: 5 6 0 1 1 10 20 30 1\n"
    wire = parse_block(block).wire()
    assert wire["read_operations_total"] == 15
    assert wire["read_time_seconds_total"] == pytest.approx(0.033)
    assert wire["read_errors_operations_total"] == 1
    assert wire["retransmits_total"] == 1


@pytest.mark.parametrize("text", [b"", b"\tbytes:\t1 2\n", b"\tbytes:\t\n\tper-op statistics\n"])
def test_what_is_torn_is_none_and_never_zero(text):
    made = parse_block(text)
    assert made.wire()["read_bytes_total"] is None
    assert made.wire()["read_operations_total"] is None
    assert made.app()["requested_bytes_total"] is None
    assert made.xprt()["send_requests_total"] is None
    assert made.age_s is None


@pytest.mark.parametrize(
    ("escaped", "path"),
    [
        (rb"/data/My\040Set", "/data/My Set"),
        (rb"/data/tab\011x", "/data/tab\tx"),
        (rb"/data/new\012line", "/data/new\nline"),
        (rb"/data/b\134s", "/data/b\\s"),
        (b"/data/\xff\xe9", "/data/\udcff\udce9"),
    ],
)
def test_a_path_is_unescaped(escaped, path):
    """prometheus/node_exporter#953, netdata/netdata#716: paths with blanks were not found."""
    text = TWO.replace(b"/mnt/a", escaped)
    assert stats(text, path, "srv:/e").age_s == 100
    assert find_header(text, path=path + "/", source="srv:/e") is None


def test_an_empty_device_name_does_not_shift_the_columns():
    """opencontainers/runtime-tools#652: the source of a mount may be empty."""
    assert find_header(TWO, path="/tmp/mp dir", source="") is None, "tmpfs has no statistics"
    text = TWO.replace(b"device srv:/e mounted", b"device  mounted")
    assert stats(text, "/mnt/a", "").age_s == 100
    text = TWO.replace(b"device srv:/e mounted", b"no device mounted")
    assert stats(text, "/mnt/a", "none").age_s == 100


def test_of_two_mounts_on_one_path_the_last_is_on_top():
    over = TWO + TWO.replace(b"age:\t100", b"age:\t7").replace(b" tmpfs", b" proc")
    assert stats(over, "/mnt/a", "srv:/e").age_s == 7
    other = TWO + TWO.replace(b"age:\t100", b"age:\t7").replace(b"srv:/e", b"srv:/f")
    assert stats(other, "/mnt/a", "srv:/f").age_s == 7
    assert stats(other, "/mnt/a", "srv:/e").age_s == 100
    assert stats(other, "/mnt/a", "renamed:/e").age_s == 7


def test_a_block_ends_where_the_next_mount_begins():
    text = (
        b"device srv:/e mounted on /mnt/a with fstype nfs statvers=1.1\n"
        b"\tage:\t5\n"
        b"device srv:/f mounted on /mnt/b with fstype nfs statvers=1.1\n"
        b"\tage:\t6\n\tbytes:\t1 1 1 1 1 1 1 1\n"
    )
    assert stats(text, "/mnt/a", "srv:/e").age_s == 5
    assert stats(text, "/mnt/a", "srv:/e").totals == []
    bare = (
        b"device srv:/e mounted on /mnt/a with fstype nfs4\n" + text[text.index(b"device srv:/f") :]
    )
    assert stats(bare, "/mnt/a", "srv:/e").age_s is None


def test_a_mount_whose_path_merely_begins_alike_is_another():
    text = TWO.replace(b"/mnt/a", b"/mnt/ab")
    assert find_header(text, path="/mnt/a", source="srv:/e") is None


def test_the_nfs_servers_own_filesystem_is_no_nfs_mount():
    text = b"device nfsd mounted on /proc/fs/nfsd with fstype nfsd\n"
    assert find_header(text, path="/proc/fs/nfsd", source="nfsd") is None


RPC = (
    b"net 0 0 0 0\nrpc 5000 3 5001\n"
    b"proc2 18 0 11 0 0 12 0 13 0 14 0 0 0 0 0 0 0 15 0\n"
    b"proc3 22 0 100 0 20 30 0 4096 7 0 0 0 0 0 0 0 0 1 2 0 0 0 0\n"
    b"proc4 31 1 12288 5 0 1281 0 2 0 1281 0 0 0 0 0 0 0 0 13 600 226 1 0 0 0 0 0 0 0 0 9 0\n"
)


@pytest.mark.parametrize(
    ("version", "reads", "writes", "metadata"),
    [(2, 13, 14, 38), (3, 4096, 7, 153), (4, 12_288, 5, 2132)],
)
def test_reads_stand_at_the_place_of_their_version(version, reads, writes, metadata):
    assert parse_rpc(RPC, version=version) == {
        "read_operations_total": reads,
        "write_operations_total": writes,
        "metadata_operations_total": metadata,
        "retransmits_total": 3,
    }


def test_only_so_many_numbers_count_as_the_first_one_says():
    """ovis-hpc/ldms#2268: the lines differ in length between kernels."""
    assert parse_rpc(b"proc4 2 1 77\n", version=4)["read_operations_total"] == 77
    assert parse_rpc(b"proc4 2 1 77 9 9\n", version=4)["write_operations_total"] is None
    assert parse_rpc(b"proc4 60 1 77 9\n", version=4)["write_operations_total"] == 9
    assert parse_rpc(b"proc3 22 1 77\n", version=3)["read_operations_total"] is None
    assert parse_rpc(b"", version=3)["retransmits_total"] is None
