"""Whoever asks for fresh tables gets an answer in the time of a request."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from mlcore import errors
from mlcore.db import deadline
from mlcore.system_tables import table_refresh


class Context:
    def get_remaining_time_in_millis(self) -> int:
        return 29_000


@pytest.fixture(autouse=True)
def _none_registered() -> Iterator[None]:
    yield
    table_refresh.provide(None)


def test_an_update_has_the_time_of_the_request_without_that_of_the_query() -> None:
    given: list[float] = []

    def refresh(until: float) -> bool:
        given.append(until - time.monotonic())
        return True

    table_refresh.provide(refresh)
    with deadline.within(Context()):
        table_refresh.refresh()
    [seconds] = given
    assert (
        pytest.approx(seconds, abs=1) == 29 - deadline.ANSWER_SECONDS - table_refresh.QUERY_SECONDS
    )


def test_an_update_that_takes_longer_is_asked_for_again() -> None:
    table_refresh.provide(lambda _until: False)
    with pytest.raises(errors.RequestLimitExceeded, match="Try again"):
        table_refresh.refresh()
    assert errors.RequestLimitExceeded.http_status == 429
