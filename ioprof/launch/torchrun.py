"""torchrun: PyTorch's own launcher, on this node."""

from __future__ import annotations

import sys

from ioprof.errors import UsageError
from ioprof.record.study import Topology


class Torchrun:
    """`python -m torch.distributed.run --standalone`: one rank per accelerator of this node."""

    def command(self, trainer: tuple[str, ...], *, topology: Topology) -> tuple[str, ...]:
        """The command for a one-node topology; UsageError for more than one node."""
        if topology.nodes != 1:
            raise UsageError(
                f"Topology {topology} spans {topology.nodes} nodes, and this version starts ranks "
                f"on this node only. Ask for 1x{topology.accelerators_per_node}."
            )
        return (
            sys.executable,
            "-m",
            "torch.distributed.run",
            # A free port is chosen by the launcher itself, so two studies never meet.
            "--standalone",
            f"--nproc-per-node={topology.accelerators_per_node}",
            *trainer,
        )
