"""SDKs of providers see no difference at the deployed gateway either: built as for Lambda, under
the runtime that streams, with the rights of its role."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import sdk_comparison
from tests.e2e.sdk_comparison import SDKS, Gateway
from tests.rehearsal import streams
from tests.rehearsal.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def gateway(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("streams")
    with (
        streams.allowing_providers_here(stack),
        streams.serving(stack, folder) as url,
        sdk_comparison.configured(stack.url, url) as made,
    ):
        yield made


@pytest.mark.parametrize("sdk", SDKS)
def test_an_sdk_sees_no_difference(gateway: Gateway, sdk: str, tmp_path: Path) -> None:
    sdk_comparison.compare(gateway, sdk, tmp_path)
