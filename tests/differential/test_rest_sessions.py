"""Random sessions: every answer equal, and equal state at the end."""

from __future__ import annotations

import os
import random
from uuid import uuid4

import pytest

from tests.differential.pair import pair
from tests.differential.session import Session

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]

CALLS = int(os.environ.get("REST_CALLS", "400"))
SEED = int(os.environ.get("REST_SEED", "1"))
SESSION = 200
"""Calls of one session; each has entities of its own."""


@pytest.mark.parametrize("number", range(-(-CALLS // SESSION)))
def test_session(stock_url: str, product_url: str, number: int) -> None:
    session = Session(random.Random(f"{SEED} {number}"), f"session {uuid4().hex[:8]}")
    with pair(stock_url, product_url) as both:
        for call in session.calls(min(SESSION, CALLS)):
            session.answered(call, both.send(call).status)
        both.send_all(session.everything())
        assert sum(both.permitted.values()) < both.calls / 5, both.permitted
