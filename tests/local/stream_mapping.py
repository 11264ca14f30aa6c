"""A mapping of the stream to a function, with the values that a test names."""

from typing import Any

from local.template_definitions import StreamMapping


def mapping(**changes: Any) -> StreamMapping:
    values: dict[str, Any] = {
        "name": "M",
        "function": "F",
        "patterns": (),
        "batch_size": 10,
        "batching_window_seconds": 0.0,
        "starting_position": "TRIM_HORIZON",
        "maximum_retry_attempts": 2,
        "maximum_record_age_seconds": -1,
        "bisect": True,
        "report_batch_item_failures": True,
    }
    return StreamMapping(**{**values, **changes})
