"""The access log's number of DynamoDB requests."""

from __future__ import annotations

from local.log import RequestCounter
from mlcore.db import capacity


def test_the_requests_of_a_handler_are_counted() -> None:
    counter = RequestCounter()
    before = counter.before()
    with capacity.measure() as measurement:
        measurement.requests += 2
    assert counter.requests_since(before) == 2
    assert counter.requests_since(counter.before()) is None, "the handler has made none"
