"""Rows of spans whose fields have types that no client sends, but that an import may bring."""

from __future__ import annotations

import json

from mlcore.system_tables.span_rows import row_of


def test_every_text_of_a_row_is_a_text_that_a_file_can_hold() -> None:
    row = row_of(
        json.dumps(
            {
                "span_id": "AAAAAAAAAAs=",
                "parent_span_id": None,
                "name": 7,
                "kind": ["\ud800"],
                "start_time_unix_nano": "5",
                "end_time_unix_nano": -3,
                "attributes": {"b": '"half \\ud800"', "a": {"deep": None}, "c\ud800": 1.5},
                "events": [{"name": None, "time_unix_nano": None, "attributes": {"x": ["\ud800"]}}],
                "links": [{"trace_id": 1, "span_id": None}],
                "status": {"code": 2, "message": {"why": 1}},
            }
        )
    )
    assert row._asdict() == {
        "span_id": "000000000000000b",
        "parent_span_id": None,
        "name": "7",
        "kind": '["?"]',
        "start_time_unix_nano": 5,
        "end_time_unix_nano": 0,
        "attributes": {"a": '{"deep": null}', "b": "half ?", "c?": "1.5"},
        "events": [{"time_unix_nano": None, "name": "", "attributes": {"x": '["?"]'}}],
        "links": [{"trace_id": "1", "span_id": "null", "attributes": {}}],
        "status": {"message": '{"why": 1}', "code": "2"},
    }
    assert list(row.attributes) == ["a", "b", "c?"]
