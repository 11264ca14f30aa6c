"""SDKs return the same from the gateway as from the provider itself, and ask the provider the
same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import sdk_comparison
from tests.e2e.sdk_comparison import SDKS, Gateway
from tests.servers import ADMIN, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("sdks")
    server = start_product(
        folder,
        *("--auth", "--data", str(folder / "data")),
        MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES="http",
        MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS="true",
        MLFLOW_AUTH_ADMIN_USERNAME=ADMIN[0],
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
    )
    with stopped(server), sdk_comparison.configured(server.url, server.url) as made:
        yield made


@pytest.mark.parametrize("sdk", SDKS)
def test_an_sdk_sees_no_difference(gateway: Gateway, sdk: str, tmp_path: Path) -> None:
    sdk_comparison.compare(gateway, sdk, tmp_path)
