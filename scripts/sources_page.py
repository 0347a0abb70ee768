"""Write docs/sources.md from what the source modules say of their counters.

python scripts/sources_page.py            # write it
python scripts/sources_page.py --check    # exit 1 when the page shows something else
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from ioprof.record.reading import Layer
from ioprof.sources.registry import FACTS
from ioprof.sources.source import Fact

PAGE = Path(__file__).resolve().parents[1] / "docs" / "sources.md"

HEAD = """# Counter sources

What ioprof reads, field by field: where it is, in which unit, since when, what it silently gets
wrong, and a command that shows the same number, so that you can check it yourself. `ioprof doctor`
prints the same for those that this machine offers, and says why the others cannot be read.

Layers: *app* the process asked · *cache* the page cache or the client's own · *client* the
filesystem client, or the block layer on behalf of one process, served it · *wire* a device or a
server delivered it · *link* it passed a NIC or port, whatever it was for · *stall* time lost ·
*host* the node itself. Scopes: *process* the recorded processes alone · *mount* everything through
one mount of this node · *device* everything on one device or volume · *host* the whole node.

Which of them says what storage delivered is not decided by this list but by trial: before anything
is measured, a known amount is read from existing files, and the counter that saw it is believed
([how](how-it-works.md#the-counter-of-storage-is-found-by-trial)).

Page residency is no counter: it is asked for file by file with `cachestat(2)` (Linux 6.5 and
later), else `mincore(2)`. Where the reader neither owns the file nor may write it, the kernel does
not tell, and it is reported as unknown, never as 0. Check with `fincore FILE`.

A counter that falls (a reset, a wrap of 32 bits, a remount, a device unplugged and plugged in
again) makes a gap, never a negative or huge rate. A rate or a lifetime mean that a filesystem
publishes is shown as it is and never taken for a counter.

Mounts are found by mount id (`/proc/self/fdinfo`), not by device number: btrfs and overlay show
files under device numbers that no mount has. A mount that does not answer is touched only by a
child with a deadline; files and programs that may hang with it are read in a thread of their own.

Read from recorded texts only, for want of such a system when this was written: NFS, SMB, Lustre,
GPFS, WekaFS, BeeGFS, the CephFS kernel client, JuiceFS, DAOS, ZFS, InfiniBand, GPUDirect Storage,
DCGM, NVML, cgroup version 2. Trial tells on your machine whether they are right.

"""


def page() -> str:
    """The whole page."""
    listed = sorted({_family(fact) for fact in FACTS}, key=[_family(f) for f in FACTS].index)
    sections = [_section(family, [f for f in FACTS if _family(f) == family]) for family in listed]
    links = " · ".join(f"[{family}](#{family})" for family in listed)
    return HEAD + links + "\n\n" + "\n".join(sections)


def _family(fact: Fact) -> str:
    return fact.source.partition(".")[0]


def _section(family: str, facts: list[Fact]) -> str:
    lines = [f"## {family}", ""]
    for (source, layer, scope), group in groupby(facts, key=lambda f: (f.source, f.layer, f.scope)):
        lines += [f"### `{source}` ({Layer(layer).value}, {scope.value})", ""]
        for fact in group:
            names = ", ".join(f"`{name}`" for name in fact.counters)
            lines += [
                f"- {names}: {_code(fact.file)}, {fact.field}; in {fact.unit}; {fact.since}.",
                f"  *{fact.caveat[:1].upper()}{fact.caveat[1:].rstrip('.')}.*",
                "",
                "  ```sh",
                f"  {fact.check}",
                "  ```",
                "",
            ]
    return "\n".join(lines)


def _code(text: str) -> str:
    return f"`{text}`" if text.startswith("/") and " " not in text else text


def main() -> int:
    """Write the page, or say whether it is current."""
    new = page()
    if "--check" in sys.argv:
        return int(PAGE.read_text() != new)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
