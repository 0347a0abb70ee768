"""The child that reads a known amount, when it does not answer."""

import os
import signal

import pytest

from ioprof.calibration.calibrate import Reader
from ioprof.errors import MeasureError


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGBUS])
def test_one_that_was_killed_is_told_by_its_signal(number):
    with Reader(deadline_s=20.0) as reader:
        assert reader.ask({"do": "choose", "paths": [], "limit_bytes": 1})["bytes"] == 0
        os.kill(reader.pid, number)
        os.waitid(os.P_PID, reader.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(MeasureError, match=rf"ended by {number.name}: nothing was measured"):
            reader.ask({"do": "evict"})


def test_one_that_stays_silent_is_left_at_its_deadline():
    with Reader(deadline_s=20.0) as reader:
        reader.ask({"do": "choose", "paths": [], "limit_bytes": 1})
        os.kill(reader.pid, signal.SIGSTOP)
        reader._deadline_s = 0.2
        with pytest.raises(MeasureError, match=r"within 0\.2 s: the mount is not responding"):
            reader.ask({"do": "evict"})
