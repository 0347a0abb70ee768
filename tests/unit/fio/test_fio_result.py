"""fio's output, in the shapes that fio really writes."""

from __future__ import annotations

import json

import pytest

from ioprof.errors import ToolError
from ioprof.fio.result import parse

MIB = 1 << 20


def job(*, mib: int, seconds: float, ios: int, mean_us: float, **more: object) -> dict[str, object]:
    """One job object of fio 3."""
    return {
        "jobname": "reader0",
        "error": 0,
        "job options": {},
        "read": {
            "io_bytes": mib * MIB,
            "io_kbytes": mib * 1024,
            "bw_bytes": 0,
            "runtime": int(seconds * 1000),
            "total_ios": ios,
            "bw_mean": 0.0,
            "bw_samples": 0,
            "clat_ns": {
                "mean": mean_us * 1000,
                "N": ios,
                "percentile": {"50.000000": 400_000, "99.000000": 2_000_000},
            },
        },
        "job_runtime": int(seconds * 1000),
        "usr_cpu": 5.0,
        "sys_cpu": 15.0,
        **more,
    }


def document(*jobs: dict[str, object], **more: object) -> str:
    return json.dumps({"fio version": "fio-3.33", "jobs": jobs, **more}, indent=2)


def test_rates_are_made_of_bytes_operations_and_run_time():
    result = parse(document(job(mib=100, seconds=5, ios=1600, mean_us=500)))
    assert result.read_bytes_per_s == 100 * MIB / 5
    assert result.reads_per_s == 320
    assert result.latency_mean_s == pytest.approx(500e-6)
    assert result.latency_p50_s == pytest.approx(400e-6)
    assert result.latency_p99_s == pytest.approx(2e-3)
    assert result.cpu_s == pytest.approx(1.0)
    assert (result.error, result.interrupted, result.messages) == (0, False, ())


def test_text_before_and_after_the_result_is_kept_as_messages():
    text = (
        "note: both iodepth >= 1 and synchronous I/O engine are selected\n"
        "fio: pid=71, err=28/file:io_u.c:1876, func=io_u error, error=No space left on device\n"
        + document(job(mib=1, seconds=1, ios=16, mean_us=1))
        + "\nfio: done\n"
    )
    result = parse(text)
    assert result.read_bytes == MIB
    assert len(result.messages) == 3
    assert result.messages[-1] == "fio: done"


def test_fio_2_counts_kibibytes_and_microseconds():
    text = json.dumps(
        {
            "fio version": "fio-2.2.10",
            "jobs": [
                {
                    "jobname": "r",
                    "error": 0,
                    "read": {
                        "io_bytes": 2048,
                        "bw": 1024,
                        "iops": 16.0,
                        "runtime": 2000,
                        "total_ios": 32,
                        "clat": {"mean": 750.0, "percentile": {"50.000000": 700}},
                    },
                    "usr_cpu": 1.0,
                    "sys_cpu": 4.0,
                }
            ],
        },
        indent=2,
    )
    result = parse(text)
    assert result.read_bytes == 2 * MIB
    assert result.read_bytes_per_s == MIB
    assert result.latency_mean_s == pytest.approx(750e-6)
    assert result.latency_p50_s == pytest.approx(700e-6)
    assert result.cpu_s == pytest.approx(0.1)


def test_jobs_that_are_not_grouped_are_added_up_and_latency_is_weighted_by_operations():
    result = parse(
        document(
            job(mib=30, seconds=2, ios=300, mean_us=100),
            job(mib=10, seconds=2, ios=100, mean_us=500),
        )
    )
    assert result.read_bytes_per_s == 20 * MIB
    assert result.reads_per_s == 200
    # (300 x 100 + 100 x 500) / 400
    assert result.latency_mean_s == pytest.approx(200e-6)
    assert result.latency_p99_s is None


def test_a_run_time_of_zero_gives_no_rate():
    result = parse(document(job(mib=3, seconds=0, ios=768, mean_us=1)))
    assert result.read_bytes == 3 * MIB
    assert result.reads == 768
    assert result.read_bytes_per_s is None
    assert result.reads_per_s is None


def test_without_operations_there_is_no_latency():
    empty = job(mib=0, seconds=0, ios=0, mean_us=0)
    empty["read"] = {"io_bytes": 0, "io_kbytes": 0, "runtime": 0, "clat_ns": {"mean": 0.0, "N": 0}}
    result = parse(document(empty))
    assert result.latency_mean_s is None
    assert result.latency_p50_s is None


def test_device_statistics_may_be_missing():
    assert parse(document(job(mib=1, seconds=1, ios=1, mean_us=1))).devices == ()


def test_device_statistics_name_the_devices():
    text = document(job(mib=1, seconds=1, ios=1, mean_us=1), disk_util=[{"name": "vda"}])
    assert parse(text).devices == ("vda",)


def test_options_of_the_job_override_the_global_ones():
    text = document(
        job(mib=1, seconds=1, ios=1, mean_us=1, **{"job options": {"bs": "64k"}}),
        **{"global options": {"bs": "4k", "direct": "1"}},
    )
    assert parse(text).options == ({"bs": "64k", "direct": "1"},)


def test_an_interrupted_run_is_marked_and_its_shorter_run_time_counts():
    text = "\nfio: terminating on signal 2\n" + document(
        job(mib=124, seconds=1.24, ios=10, mean_us=1)
    )
    result = parse(text)
    assert result.interrupted
    assert result.runtime_s == 1.24
    assert result.read_bytes_per_s == pytest.approx(100 * MIB)


def test_the_first_error_of_any_job_is_kept():
    bad = job(mib=0, seconds=0, ios=0, mean_us=0, error=22)
    assert parse(document(job(mib=1, seconds=1, ios=1, mean_us=1), bad)).error == 22


def test_no_json_at_all_shows_what_fio_said():
    with pytest.raises(ToolError, match="unrecognized option '--rwx=read'"):
        parse("fio: unrecognized option '--rwx=read'\n")


def test_an_empty_file_says_that_fio_said_nothing():
    with pytest.raises(ToolError, match="It said: nothing"):
        parse("")


def test_half_a_document_is_a_killed_run():
    text = document(job(mib=1, seconds=1, ios=1, mean_us=1))
    with pytest.raises(ToolError, match="ends in the middle"):
        parse(text[: len(text) // 2])


def test_not_a_number_is_missing_and_does_not_lose_the_rest():
    text = document(job(mib=8, seconds=2, ios=1, mean_us=1)).replace(
        '"bw_mean": 0.0', '"bw_mean": -nan'
    )
    assert parse(text).read_bytes_per_s == 4 * MIB


def test_no_jobs_is_an_error_with_fios_words():
    with pytest.raises(ToolError, match="It said: fio: engine broke"):
        parse('fio: engine broke\n{\n  "fio version": "fio-3.33"\n}\n')
