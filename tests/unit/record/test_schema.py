from pathlib import Path

import jsonschema
import pytest

from ioprof.record.schema import schema_text, summary_schema

COMMITTED = Path(__file__).parents[3] / "docs" / "summary.schema.json"


def test_the_committed_schema_is_the_one_the_classes_make():
    made = "python -m ioprof.record.schema > docs/summary.schema.json"
    assert COMMITTED.read_text(encoding="utf-8") == schema_text(), f"out of date, run: {made}"


def test_the_schema_is_itself_valid():
    jsonschema.Draft202012Validator.check_schema(summary_schema())


def test_something_that_is_no_summary_does_not_pass():
    with pytest.raises(jsonschema.ValidationError, match="is a required property"):
        jsonschema.validate({"format_version": 1, "ioprof_version": "0"}, summary_schema())
