"""The measurement of the gateway measures: each kind of call is made and its answer is complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import gateway
from bench.gateway import Target
from tests.servers import stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]


def test_the_provider_and_the_product(tmp_path: Path) -> None:
    with gateway.provider() as url:
        product = gateway.product(url, tmp_path, traces=True)
        assert product.server is not None
        with stopped(product.server):
            itself = Target("the provider itself", url, "/v1/chat/completions")
            sides = gateway.measured([itself, product], turns=1, calls=1)
    direct, through = sides
    works = {work for work in through.samples if not work.startswith(("start", "memory"))}
    assert works == set(direct.samples)
    assert all(value > 0 for side in sides for values in side.samples.values() for value in values)
    lines = gateway.table(sides).splitlines()
    assert len(lines) == 2 + len(through.samples)
    assert {line.count("|") for line in lines} == {4}
