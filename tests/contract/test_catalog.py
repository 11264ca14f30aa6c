"""The catalog of models and MCP servers: what it answers, what a source that is broken leaves, and
that a reader sees one generation whatever the loader does."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mlcore.db import capacity, keys
from mlcore.db.table import Table
from mlcore.memory import forget
from mlcore.repos import catalog
from tests.contract.catalog_api import FILES, SERVERS, CatalogApi
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.kubeflow_api import KubeflowApi

ALPHA = "sources/open/models/org/Alpha"


@pytest.fixture
def api(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogApi:
    monkeypatch.setenv("CATALOG_FOLDER", str(tmp_path))
    return CatalogApi(tmp_path)


@pytest.fixture
def filled(api: CatalogApi) -> CatalogApi:
    for name, text in FILES.items():
        api.write(**{name.removesuffix(".yaml"): text})
    assert api.load()["changed"]
    return api


def test_sources_and_labels(filled: CatalogApi) -> None:
    sources = {one["id"]: one for one in filled.get("sources")["items"]}
    assert {name: one["status"] for name, one in sources.items()} == {
        "lab": "available",
        "off": "disabled",
        "open": "available",
    }
    assert sources["open"]["labels"] == ["Open"]
    assert filled.names("sources", name="OPEN") == ["Open models"]
    assert filled.names("sources", assetType="mcp_servers") == ["Tools"]
    assert filled.names("sources", assetType="anything") == []
    assert filled.names("sources", orderBy="NAME", sortOrder="DESC")[0] == "Switched off"
    assert filled.names("labels") == ["Open", None]
    assert filled.names("labels", orderBy="priority", sortOrder="DESC") == ["Open", None]
    assert filled.ask("GET", "labels", assetType="agents").status == 400
    assert filled.ask("GET", "sources", orderBy="SIZE").status == 400


QUERIES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["gamma", "lab/one", "org/Alpha", "org/beta"]),
    ({"source": "lab,open", "q": "ORG"}, ["org/Alpha", "org/beta"]),
    ({"source": ["lab", "open"], "q": "first of"}, ["org/Alpha"]),
    ({"sourceLabel": "open"}, ["gamma", "org/Alpha", "org/beta"]),
    ({"sourceLabel": "null"}, ["lab/one"]),
    ({"sourceLabel": "nobody's"}, []),
    ({"filterQuery": "language = 'de'"}, ["org/Alpha"]),
    ({"filterQuery": "language != 'de'"}, ["org/beta"]),
    ({"filterQuery": "language IN ('fr', 'de') AND license LIKE 'm%'"}, ["org/beta"]),
    ({"filterQuery": "size.string_value = '7B' AND layers > 30"}, ["org/Alpha"]),
    ({"filterQuery": "artifacts.ttft_p90 < 70"}, ["gamma", "org/Alpha"]),
    # Of the same artifact: the fast one of Alpha is no A10.
    (
        {"filterQuery": "artifacts.ttft_p90 < 70 AND artifacts.hardware_type = 'A10'"},
        ["gamma"],
    ),
    (
        {"filterQuery": "(artifacts.ttft_p90 < 70) AND (artifacts.hardware_type = 'A10')"},
        ["gamma", "org/Alpha"],
    ),
    ({"orderBy": "ACCURACY"}, ["org/Alpha"]),
    ({"orderBy": "artifacts.ttft_p90.double_value"}, ["org/Alpha", "gamma"]),
    (
        {"orderBy": "artifacts.ttft_p90.double_value", "sortOrder": "DESC"},
        ["org/Alpha", "gamma"],
    ),
    ({"orderBy": "NAME", "sortOrder": "DESC"}, ["org/beta", "org/Alpha", "lab/one", "gamma"]),
    ({"recommendations": "true"}, ["org/Alpha", "gamma", "lab/one", "org/beta"]),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES, ids=lambda one: str(one)[:60])
def test_models(shared: CatalogApi, query: dict[str, Any], expected: list[str]) -> None:
    found = shared.names("models", **query)
    if "orderBy" in query and query["orderBy"] != "NAME":
        found = found[: len(expected)]
    assert found == expected


@pytest.fixture(scope="module")
def shared(shared_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("catalog")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CATALOG_FOLDER", str(folder))
        api = CatalogApi(folder)
        for name, text in FILES.items():
            api.write(**{name.removesuffix(".yaml"): text})
        api.load()
        yield api


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("models", {"filterQuery": "name ="}, 400),
        ("models", {"filterQuery": "name = 5"}, 400),
        ("models", {"source": "open", "sourceLabel": "Open"}, 400),
        ("models", {"pageSize": "0"}, 400),
        ("models", {"pageSize": "many"}, 400),
        ("models", {"nextPageToken": "%%%"}, 400),
        ("models", {"nextPageToken": "bm90aGluZw"}, 400),
        ("models", {"sortOrder": "UP"}, 400),
        ("models", {"q": "\0"}, 400),
        (ALPHA, {}, 200),
        ("sources/open/models/org%2FAlpha", {}, 200),
        ("sources/open/models/nothing", {}, 404),
        ("sources/lab/models/org/Alpha", {}, 404),
        ("sources/open/models/nothing/artifacts", {}, 400),
        ("sources/open/models/nothing/artifacts/performance", {}, 404),
        (f"{ALPHA}/artifacts", {"filterQuery": "x.string_value = 5.0"}, 400),
        (f"{ALPHA}/artifacts", {"artifactType": "doc-artifact"}, 400),
        (f"{ALPHA}/artifacts/performance", {"targetRPS": "0"}, 400),
        ("nothing", {}, 404),
        (f"{SERVERS}/mcp_servers", {"namedQuery": "unknown"}, 400),
        (f"{SERVERS}/mcp_servers", {"toolLimit": "101"}, 400),
        (f"{SERVERS}/mcp_servers/x", {}, 400),
        (f"{SERVERS}/mcp_servers/1", {}, 404),
    ],
)
def test_what_is_refused(shared: CatalogApi, path: str, query: dict[str, Any], status: int) -> None:
    answer = shared.ask("GET", path.replace("%2F", "/"), **query)
    assert answer.status == status
    if status >= 400 and path != "nothing":
        assert set(answer.body) == {"code", "message"}


def test_artifacts(shared: CatalogApi) -> None:
    assert shared.get(f"{ALPHA}/artifacts")["size"] == 5
    (model,) = shared.get(f"{ALPHA}/artifacts", artifactType="model-artifact")["items"]
    assert (model["uri"], model["createTimeSinceEpoch"]) == (
        "oci://registry/alpha:1",
        "1700000000000",
    )
    listed = shared.get(f"{ALPHA}/artifacts", orderBy="ttft_p90.double_value", sortOrder="DESC")
    latencies = [
        one["customProperties"].get("ttft_p90", {}).get("double_value") for one in listed["items"]
    ]
    assert latencies == [300.0, 80.0, 50.0, None, None]


def test_what_hardware_is_worth_its_price(shared: CatalogApi) -> None:
    path = f"{ALPHA}/artifacts/performance"
    asked = shared.get(path, targetRPS=9, orderBy="ttft_p90.double_value")["items"]
    replicas = [one["customProperties"]["replicas"]["int_value"] for one in asked]
    assert replicas == ["2", "3", "5"]
    best = shared.get(path, targetRPS=9, recommendations="true")["items"]
    # Of the H100, two of two cost 4 and are faster than three of one, which cost 3.
    assert [one["customProperties"]["ttft_p90"]["double_value"] for one in best] == [300, 50, 80]


def test_filter_options_and_named_queries(shared: CatalogApi) -> None:
    options = shared.get("models/filter_options")
    assert options["filters"]["language"] == {"type": "string", "values": ["de", "en", "fr"]}
    latency = options["filters"]["artifacts.ttft_p90.double_value"]
    assert latency == {"type": "number", "range": {"min": 50.0, "max": 300.0}}
    assert options["namedQueries"]["fast"] == {
        "artifacts.ttft_p90.double_value": {"operator": "<=", "value": 50.0}
    }


def test_servers_and_tools(shared: CatalogApi) -> None:
    (server,) = shared.get(f"{SERVERS}/mcp_servers", namedQuery="remote")["items"]
    assert (server["name"], server["toolCount"], "tools" in server) == ("forge", 2, False)
    place = f"{SERVERS}/mcp_servers/{server['id']}"
    shown = shared.get(place, includeTools="true", toolLimit=1)
    assert [tool["name"] for tool in shown["tools"]] == ["search"]
    assert shared.names(f"{place}/tools") == ["delete", "search"]
    assert shared.names(f"{place}/tools", filterQuery="accessType = 'read_only'") == ["search"]
    assert shared.get(f"{place}/tools/search")["serverName"] == "forge"
    assert shared.ask("GET", f"{place}/tools/none").status == 404
    assert shared.names(f"{SERVERS}/mcp_servers", filterQuery="sast = true") == ["forge"]
    assert shared.names(f"{SERVERS}/mcp_servers", name="FIL") == ["files"]


def test_both_versions_answer_alike_and_the_old_one_says_so(shared: CatalogApi) -> None:
    old = shared.get("models")
    assert shared.get("/api/model_catalog/v1/models") == old


def test_a_list_is_one_round_trip_and_the_first_two(shared: CatalogApi) -> None:
    forget()
    counts = []
    for _ in range(2):
        shared.get("models", filterQuery="artifacts.ttft_p90 < 70")
        last = capacity.last()
        assert last is not None
        counts.append(last.round_trips)
    assert counts == [2, 1]


def test_a_preview_reads_and_writes_nothing(shared: CatalogApi) -> None:
    def form(config: str, data: str = "") -> str:
        parts = [("config", config), *([("catalogData", data)] if data else [])]
        lines = [
            f'--b\r\nContent-Disposition: form-data; name="{name}"; filename="x"\r\n\r\n{text}\r\n'
            for name, text in parts
        ]
        return "".join([*lines, "--b--\r\n"])

    def ask(config: str, data: str = "", **query: Any) -> Any:
        return shared.ask("POST", "sources/preview", form(config, data), form="b", **query)

    shown = ask("type: yaml\nexcludedModels: ['*two*']", FILES["lab.yaml"])
    assert shown.body["summary"] == {"totalModels": 3, "includedModels": 2, "excludedModels": 1}
    shown = ask("type: yaml", FILES["lab.yaml"], filterStatus="included", pageSize=2)
    assert (shown.body["size"], shown.body["nextPageToken"]) == (2, "2")
    named = "type: yaml\nproperties: {yamlCatalogPath: lab.yaml}"
    assert ask(named).body["summary"]["totalModels"] == 3
    outside = "type: yaml\nproperties: {yamlCatalogPath: ../../etc/passwd}"
    for config in ("type: other", "id: x", "a: [", outside, "type: yaml\nunknown: 1"):
        assert ask(config, "" if config == outside else "models: []").status == 422, config
    assert ask("type: yaml", "models: []", filterStatus="some").status == 400
    assert shared.ask("POST", "sources/preview", "{}").status == 400


# ------------------------------------------------------------------ loading


def _models(count: int, mark: str) -> str:
    rows = [
        f"  - {{name: m{at:03}, provider: {mark}, description: {'x' * 3000}{at}}}"
        for at in range(count)
    ]
    return "\n".join(["models:", *rows])


def test_what_has_not_changed_is_not_loaded(filled: CatalogApi) -> None:
    assert not filled.load()["changed"]
    assert filled.ask("POST", "sources/reload").body["changed"]
    filled.write(lab="models: [{name: lab/new}]")
    assert filled.load()["changed"]
    assert "lab/new" in filled.names("models")


def test_a_broken_source_keeps_its_models(filled: CatalogApi) -> None:
    before = filled.get("models")["items"]
    broken = {
        "not YAML": "models: [",
        "an unknown list": "modles: []",
        "twice the same": "models: [{name: a}, {name: a}]",
        "a foreign scheme": "models: [{name: a, artifacts: [{uri: 'ftp://x'}]}]",
        "a bomb": "a: &a [x, x]\n"
        + "\n".join(f"{chr(98 + n)}: &{chr(98 + n)} [{f'*{chr(97 + n)},' * 9}]" for n in range(9)),
    }
    for name, text in broken.items():
        filled.write(lab=text)
        assert filled.load()["errors"] == 1, name
        (source,) = filled.get("sources", name="lab")["items"]
        assert source["status"] == "error"
        assert source["error"]
        assert filled.get("models")["items"] == before
    filled.write(sources=FILES["sources.yaml"].replace("id: lab", "id: open"))
    assert filled.load()["errors"]
    assert "duplicate source id" in filled.get("sources")["items"][0]["error"]
    assert filled.get("models")["items"] == before
    filled.write(sources=FILES["sources.yaml"], lab=FILES["lab.yaml"])
    assert filled.load()["errors"] == 0


@pytest.mark.parametrize("path", ["../x.yaml", "a/../../x.yaml", "/etc/passwd", "none.yaml"])
def test_no_path_leads_out_of_the_catalog(api: CatalogApi, tmp_path: Path, path: str) -> None:
    (tmp_path.parent / "x.yaml").write_text("models: [{name: outside}]")
    api.write(sources=f"catalogs: [{{id: a, type: yaml, properties: {{yamlCatalogPath: {path}}}}}]")
    assert api.load()["errors"] == 1
    assert api.names("models") == []


def test_a_loader_killed_at_any_write_leaves_the_old_generation(
    api: CatalogApi, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "catalogs: [{id: a, type: yaml, properties: {yamlCatalogPath: m.yaml}}]"
    api.write(sources=source, m=_models(3, "old"))
    api.load()
    monkeypatch.setattr(catalog, "KEPT_MS", 1)
    monkeypatch.setattr("catalog_loader.loading._SHARD_BYTES", 5000)
    monkeypatch.setattr(catalog, "_SHARDS_AT_ONCE", 2)
    call = Table._call
    for killed_at in range(1, 40):
        api.write(m=_models(9, f"new{killed_at}"))
        left = [killed_at]

        def failing(self: Table, operation: str, left: list[int] = left, **rest: Any) -> Any:
            if operation not in ("GetItem", "BatchGetItem", "Query"):
                left[0] -= 1
                if left[0] <= 0:
                    raise KeyboardInterrupt
            return call(self, operation, **rest)

        before = {one["provider"] for one in api.walk(4)}
        with monkeypatch.context() as patch:
            patch.setattr(Table, "_call", failing)
            try:
                api.load()
            except KeyboardInterrupt:
                ended = False
            else:
                ended = True
        seen = api.walk(4)
        providers = {one["provider"] for one in seen}
        assert len(providers) == 1
        assert providers in (before, {f"new{killed_at}"})
        assert len(seen) == len({one["id"] for one in seen})
        api.load()
        assert {one["provider"] for one in api.walk(4)} == {f"new{killed_at}"}
        if ended:
            break
    else:
        pytest.fail("the loader never ended")
    api.ask("POST", "sources/reload")
    catalog.sweep(catalog.current(), 2**50, unfinished=True)
    kinds = Counter(
        keys.parse(one["PK"]["S"], one["SK"]["S"]).pattern.name for one in store.items()
    )
    assert kinds == {
        "catalog": 1,
        "catalog_generation": 1,
        "catalog_shard": catalog.current().shards,
    }


def test_each_walk_is_one_generation(api: CatalogApi) -> None:
    """Readers page through the list while it is loaded again and again."""
    source = "catalogs: [{id: a, type: yaml, properties: {yamlCatalogPath: m.yaml}}]"
    api.write(sources=source, m=_models(30, "g0"))
    api.load()
    ended = threading.Event()
    walks: list[list[dict[str, Any]]] = []
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not ended.is_set():
                walks.append(api.walk(7))
        except BaseException as failure:
            failures.append(failure)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for number in range(1, 9):
        api.write(m=_models(30 + number, f"g{number}"))
        api.load()
    ended.set()
    for reader in readers:
        reader.join()
    assert not failures
    assert len(walks) >= 4
    for walk in walks:
        (mark,) = {one["provider"] for one in walk}
        assert [one["name"] for one in walk] == [f"m{at:03}" for at in range(30 + int(mark[1:]))]


def test_sources_of_one_workspace_are_its_own(
    filled: CatalogApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable_workspaces(monkeypatch, "team")
    folder = tmp_path / "workspaces" / "team"
    folder.mkdir(parents=True)
    (folder / "sources.yaml").write_text(
        "catalogs: [{id: own, type: yaml, properties: {yamlCatalogPath: ../../lab.yaml}}]"
    )
    assert filled.load()["errors"] == 0
    shared_by_all = filled.names("models")
    assert "elsewhere/three" not in shared_by_all
    assert filled.ask("GET", "sources/own/models/lab/one").status == 404
    filled.headers = {"x-mlflow-workspace": "team"}
    assert filled.get("sources/own/models/lab/one")["source_id"] == "own"
    listed = filled.names("models", source="own")
    assert listed == ["elsewhere/three", "lab/one", "lab/two-draft"]
    assert set(shared_by_all) < set(filled.names("models"))


# ------------------------------------------------------------------ into the registry


def test_a_model_is_registered_once_whatever_happens(
    filled: CatalogApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = KubeflowApi()
    path, body = f"{ALPHA}/register", '{"name": "alpha", "versionName": "first"}'
    call = Table._call
    for killed_at in range(1, 30):
        left = [killed_at]

        def failing(self: Table, operation: str, left: list[int] = left, **rest: Any) -> Any:
            if operation not in ("GetItem", "BatchGetItem", "Query"):
                left[0] -= 1
                if left[0] <= 0:
                    raise KeyboardInterrupt
            return call(self, operation, **rest)

        with monkeypatch.context() as patch:
            patch.setattr(Table, "_call", failing)
            try:
                answer = filled.ask("POST", path, body)
            except KeyboardInterrupt:
                continue
        break
    else:
        pytest.fail("it never ended")
    again = filled.ask("POST", path, body)
    assert (again.status, again.body) == (200, answer.body)
    (model,) = registry.items("registered_models")
    (version,) = registry.items(f"registered_models/{model['id']}/versions")
    (artifact,) = registry.items(f"model_versions/{version['id']}/artifacts")
    assert (model["name"], version["name"]) == ("alpha", "first")
    assert (artifact["uri"], artifact["modelSourceKind"], artifact["modelSourceName"]) == (
        "oci://registry/alpha:1",
        "catalog",
        "org/Alpha",
    )
    other = "sources/open/models/org/beta/register"
    assert filled.ask("POST", other, body).status == 409
    assert filled.ask("POST", other, '{"nme": "x"}').status == 400
    assert filled.ask("POST", "sources/open/models/none/register").status == 404
