"""Sentences on what was asked of the filesystem."""

from ioprof.record.summary import RequestSizes
from ioprof.report.requests import requests
from tests.unit.report.summaries import cell


def sized(*reads: float) -> RequestSizes:
    return RequestSizes(
        source="block.sizes", up_to_bytes=(4096, 65536, 131072), reads=reads, larger=0.0
    )


def counted(name: str, rate: float):
    return cell("1x1", name, "cold", metadata_ops_per_s=rate, metadata_ops_source="xfs")


def test_nothing_is_said_where_nothing_is_known():
    assert list(requests([cell("1x1", "dali-files", "cold")])) == []


def test_a_rate_that_is_the_same_everywhere_is_said_once():
    (said,) = requests([counted("torch-files", 0.0), counted("dali-files", 0.0)])
    assert said == ("Metadata operations past the kernel's own caches, by xfs: 0/s in every cell.")


def test_rates_that_differ_are_told_by_cell():
    (said,) = requests(
        [counted("torch-files", 12.0), counted("dali-files", 3.0), counted("reads", 12.0)]
    )
    assert said.endswith("1x1 torch-files cold, 1x1 reads cold: 12/s; 1x1 dali-files cold: 3/s.")


def test_one_cell_alone_is_named():
    (said,) = requests([counted("torch-files", 12.0)])
    assert said.endswith("by xfs: 1x1 torch-files cold: 12/s.")


def test_sizes_are_told_by_their_half_and_their_large_end():
    # Of 100 reads 50 are of up to 64 KiB, and 95 need the next edge.
    both = [
        cell("1x1", "torch-files", "cold", read_request_sizes=sized(20.0, 30.0, 50.0)),
        cell("1x2", "torch-files", "cold", read_request_sizes=sized(2.0, 3.0, 5.0)),
    ]
    (said,) = requests(both)
    assert said == (
        "Request sizes by block.sizes: half up to 64.0 KiB, 95 % up to 128 KiB in every cell that "
        "storage fed."
    )


def test_the_few_reads_of_a_warm_cell_are_not_told():
    warm = cell("1x1", "torch-files", "warm", read_request_sizes=sized(20.0, 0.0, 0.0))
    assert list(requests([warm])) == []
