"""Nonsense to every operation of the catalog, in both versions of its API: the answer is never that
the server failed. ``CATALOG_NONSENSE`` multiplies the requests."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any, Final

import pytest

import catalog.app
import catalog_loader.app
from tests.contract.catalog_api import FILES, CatalogApi, form
from tests.contract.conftest import Store

REQUESTS: Final = 12 * int(os.environ.get("CATALOG_NONSENSE", "1"))
TEXTS: Final = (
    *("", " ", "\0", "0", "-1", "99999999999999999999", "1e400", "NaN", "true", "null", "None"),
    *("é漢😀", "'", '"', "`", "%", "%2F", "..", "../../etc/passwd", "a" * 3000, "x:y:z", "\udcff"),
    *("name = 'a'", "name =", "id > 'x'", "((((", "a IN ()", "artifacts.x.int_value = true"),
    *("artifacts. = 1", "NOT", "a AND", "name LIKE '%_%'", "tasks != 1", "`a`.double_value < 1"),
    *("artifacts.ttft_p90 > 1 AND artifacts.hardware_type = 'A10'", "language IN ('de', 'x')"),
    *("ID", "NAME", "ACCURACY", "RECOMMENDED", "ttft_p90.double_value", "artifacts.x.string_value"),
    *(
        "artifacts.hardware_type.double_value",
        "layers.string_value",
        ".double_value",
        "DESC",
        "ASC",
    ),
    *("open", "org/Alpha", "remote", "model-artifact", "Zm9vOjE6Mg", "MDox", "open,lab", "models"),
)
NAMES: Final = (
    *("filterQuery", "orderBy", "sortOrder", "pageSize", "nextPageToken", "q", "name", "source"),
    *("sourceLabel", "assetType", "artifactType", "artifact_type", "targetRPS", "recommendations"),
    *("rpsProperty", "latencyProperty", "hardwareCountProperty", "hardwareTypeProperty"),
    *("includeTools", "toolLimit", "namedQuery", "filterStatus", "unknown"),
)
BODIES: Final = (
    *("", "{}", "[]", "null", '{"name": 5}', '{"name": "\\ud800"}', "{", '{"versionName": ""}'),
    *("a: [", "type: yaml", "type: hf\nincludedModels: [5]", "type: hf\nincludedModels: ['*']"),
    *("&a [*a]", "type: yaml\nproperties: {yamlCatalogPath: 7}", "type: yaml\nproperties: []"),
)
ROUTES: Final = (*catalog.app.PLAIN_ROUTES, *catalog_loader.app.PLAIN_ROUTES)


@pytest.fixture(scope="module")
def api(shared_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("catalog")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CATALOG_FOLDER", str(folder))
        catalogapi = CatalogApi(folder)
        for name, text in FILES.items():
            catalogapi.write(**{name.removesuffix(".yaml"): text})
        catalogapi.load()
        yield catalogapi


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_no_request_makes_it_fail(api: CatalogApi, route: Any) -> None:
    chosen = random.Random(f"{route.method} {route.path}")
    answered = set()
    for number in range(REQUESTS):
        path = route.path
        for name, right in (
            *(("source_id", "open"), ("model_name+", "org/Alpha"), ("tool_name", "search")),
            ("server_id", "1"),
        ):
            text = right if chosen.random() < 0.6 else chosen.choice(TEXTS)
            path = path.replace(f"{{{name}}}", text.replace("\udcff", "?") or "-")
        texts = {chosen.choice(NAMES): chosen.choice(TEXTS) for _ in range(number % 4)}
        query: dict[str, Any] = {
            name: text.encode("utf-8", "surrogateescape") for name, text in texts.items()
        }
        body, boundary = None, ""
        if route.method == "POST":
            body = chosen.choice(BODIES)
            if path.endswith("preview") and chosen.random() < 0.8:
                body, boundary = form(body, chosen.choice(BODIES)), "b"
        answer = api.ask(route.method, path, body, boundary, **query)
        assert answer.status < 500, (path, query, body)
        answered.add(answer.status)
    assert answered
