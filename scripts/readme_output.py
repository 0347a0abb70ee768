"""Put the text report of an example run into README.md, between its markers.

python scripts/readme_output.py            # write it
python scripts/readme_output.py --check    # exit 1 when README.md shows something else
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from ioprof.analysis.summary import summarise
from ioprof.record.store import RunDirectory
from ioprof.report import text

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
RUN = ROOT / "reports" / "busy-client"
SHOWN = 4
"""Sections from the top: the answer, AU, step times, reading. The last line is always shown."""
BEGIN, END = "<!-- output:begin -->\n", "<!-- output:end -->"


def with_output(readme: str) -> str:
    """README with the example run's report between the markers."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    summary = summarise(RunDirectory(RUN))
    command = ("ioprof", *summary.command[1:])
    sections = text.render(summary).split("\n\n")
    shown = "\n\n".join([*sections[:SHOWN], "[…]", sections[-1]])
    return f"{before}{BEGIN}```text\n$ {shlex.join(command)}\n{shown}\n```\n{END}{after}"


def main() -> int:
    """Write README.md, or say whether it is current."""
    old = README.read_text()
    new = with_output(old)
    if "--check" in sys.argv:
        return int(old != new)
    README.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
