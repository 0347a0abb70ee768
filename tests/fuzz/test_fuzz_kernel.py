"""The kernel's own texts: torn, doubled, shuffled, and of versions to come."""

import os
from pathlib import Path

from ioprof.sources import cpu, network, pressure, vmstat
from ioprof.sources.block import parse_diskstats
from ioprof.sources.descendants import parse_status
from ioprof.sources.fusedaemon import parse_connection, parse_stat
from ioprof.sources.mount import parse_mount_id, parse_mountinfo
from ioprof.sources.pidio import parse_io, sum_io
from tests.fuzz.mutate import survives

DATA = Path(__file__).parents[1] / "data"
STAT = (
    b"cpu  400 40 400 4000 40 4 4 40 200 0\ncpu0 100 10 100 1000 10 1 1 10 50 0\n"
    b"cpu1 200 0 0 2000 0 0 0 0 0 0\nintr 12345 0 0\nctxt 99\n"
)
STATUS = (
    b"Name:\tpython\nState:\tS (sleeping)\nTgid:\t9\nPid:\t9\nPPid:\t1\nSigIgn:\t0000000001001000\n"
)
PID_STAT = (
    b"77 (a) b (c) S 1 77 77 0 -1 1077936192 201 0 3 0 250 50 9 9 20 0 3 0 123456 7000000 900 "
    b"18446744073709551615 0 0 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0\n"
)
FDINFO = b"pos:\t0\nflags:\t010000000\nmnt_id:\t47\nino:\t2\n"


def sample(*path):
    return DATA.joinpath(*path).read_bytes()


def named(family):
    return {counter for fact in family.FACTS for counter in fact.counters}


def test_diskstats():
    survives(parse_diskstats, [sample("block", "diskstats.txt")])


def test_mountinfo():
    survives(lambda text: parse_mountinfo(os.fsdecode(text)), [sample("block", "mountinfo.txt")])


def test_fdinfo():
    survives(lambda text: parse_mount_id(os.fsdecode(text)), [FDINFO])


def test_the_counters_of_a_process():
    text = sample("proc", "pid_io.txt")
    survives(parse_io, [text], errors=(ValueError,))
    survives(lambda torn: sum_io([torn, text]), [text])


def test_the_status_of_a_process():
    survives(parse_status, [STATUS])


def test_the_page_cache():
    text = sample("proc", "vmstat.txt")
    survives(vmstat.parse, [text], keys=dict.keys, allowed=named(vmstat))


def test_interfaces():
    survives(network.parse, [sample("net", "proc_net_dev.txt")])


def test_pressure():
    texts = [sample("proc", "pressure_io.txt"), sample("proc", "pressure_cpu_old_kernel.txt")]
    survives(pressure.parse, texts, keys=dict.keys, allowed=named(pressure))


def test_processor_time():
    survives(cpu.parse, [STAT])


def test_the_connection_of_a_daemon():
    survives(parse_connection, [sample("fuse", "fdinfo_dev_fuse.txt")])


def test_the_time_of_a_daemon():
    survives(parse_stat, [PID_STAT])
