"""The JSON Schema of `summary.json`, made from the classes that write it.

`python -m ioprof.record.schema > docs/summary.schema.json` writes the committed copy anew.
"""

from __future__ import annotations

import json
import sys

import msgspec

from ioprof.record.summary import Summary


def summary_schema() -> dict[str, object]:
    """The schema that every `summary.json` of this version satisfies."""
    return msgspec.json.schema(Summary)


def schema_text() -> str:
    """The schema as the committed file holds it, byte for byte."""
    return json.dumps(summary_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
