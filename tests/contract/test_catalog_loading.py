"""How the catalog is loaded: what a broken source leaves, that a reader sees one generation
whatever the loader does, that nothing is left of a loader that was killed; and how a model of it
comes into the registry."""

from __future__ import annotations

import contextlib
import os
import resource
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlcore.db import keys
from mlcore.db.table import Table
from mlcore.ids import now_ms
from mlcore.repos import catalog
from tests.contract.catalog_api import FILES, SERVERS, CatalogApi, performance
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


@contextlib.contextmanager
def killed_at(write: int) -> Iterator[None]:
    """The process dies in place of its write of that number, counted from 1."""
    call = Table._call
    left = [write]

    def failing(self: Table, operation: str, **rest: Any) -> Any:
        if operation not in ("GetItem", "BatchGetItem", "Query"):
            left[0] -= 1
            if left[0] <= 0:
                raise KeyboardInterrupt
        return call(self, operation, **rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "_call", failing)
        yield


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


def test_the_time_of_a_load_stays_until_the_file_changes(filled: CatalogApi) -> None:
    def times() -> dict[str, str]:
        return {
            item["name"]: item["createTimeSinceEpoch"] for item in filled.get("models")["items"]
        }

    before = times()
    filled.ask("POST", "sources/reload")
    assert times() == before
    filled.write(lab="models: [{name: lab/one}, {name: lab/new}]")
    assert filled.load()["changed"]
    after = times()
    assert after["lab/one"] == after["lab/new"] > before["lab/one"]
    assert after["org/beta"] == before["org/beta"]


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


def test_a_broken_source_keeps_artifacts_and_recommendations(filled: CatalogApi) -> None:
    def answers() -> list[Any]:
        queries = ({}, {"orderBy": "RECOMMENDED"}, {"recommendations": "true", "targetRPS": 9})
        return [
            *(filled.get("models", **query)["items"] for query in queries),
            filled.get(f"{ALPHA}/artifacts")["items"],
            filled.get(f"{ALPHA}/artifacts/performance", recommendations="true")["items"],
        ]

    expected = answers()
    assert expected[0] != expected[1]
    filled.write(open="models: [")
    assert filled.load()["errors"] == 1
    assert answers() == expected


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
    monkeypatch.setattr("catalog_loader.generation_parts._PART_BYTES", 5000)
    monkeypatch.setattr(catalog, "_SHARDS_AT_ONCE", 2)
    for write in range(1, 40):
        api.write(m=_models(9, f"new{write}"))
        before = {model["provider"] for model in api.walk(4)}
        with killed_at(write):
            try:
                api.load()
            except KeyboardInterrupt:
                ended = False
            else:
                ended = True
        seen = api.walk(4)
        providers = {model["provider"] for model in seen}
        assert len(providers) == 1
        assert providers in (before, {f"new{write}"})
        assert len(seen) == len({model["id"] for model in seen})
        api.load()
        assert {model["provider"] for model in api.walk(4)} == {f"new{write}"}
        if ended:
            break
    else:
        pytest.fail("the loader never ended")
    api.ask("POST", "sources/reload")
    catalog.sweep(catalog.current(), 2**50, unfinished=True)
    kinds = Counter(
        keys.parse(item["PK"]["S"], item["SK"]["S"]).pattern.name for item in store.items()
    )
    assert kinds == {
        "catalog": 1,
        "catalog_generation": 1,
        "catalog_shard": len(
            {item["SK"]["S"] for item in store.items() if item["SK"]["S"][:10] == "CSRC#SHARD"}
        ),
    }


def test_a_loader_that_is_taken_for_a_killed_one_leaves_no_parts(
    api: CatalogApi, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another load begins and ends while this one writes its parts; killed or not, nothing of it is
    left when its time is over."""
    source = "catalogs: [{id: a, type: yaml, properties: {yamlCatalogPath: m.yaml}}]"
    api.write(sources=source, m=_models(9, "old"))
    monkeypatch.setattr("catalog_loader.generation_parts._PART_BYTES", 5000)
    monkeypatch.setattr(catalog, "_SHARDS_AT_ONCE", 2)
    end = catalog._Writing.end
    for killed in (False, True):
        batches: list[int] = []

        def late(
            writing: catalog._Writing, batches: list[int] = batches, killed: bool = killed
        ) -> None:
            batches.append(1)
            if len(batches) == 2:
                assert api.ask("POST", "sources/reload").status == 200
            if killed and len(batches) > 3:
                raise KeyboardInterrupt
            end(writing)

        with monkeypatch.context() as patch:
            patch.setattr(catalog._Writing, "end", lambda writing, late=late: late(writing))
            with contextlib.suppress(KeyboardInterrupt):
                api.load()
    catalog.sweep(
        catalog.current(), now_ms() + catalog.LOADING_MS + catalog.KEPT_MS, unfinished=False
    )
    current = catalog.current().generation
    shards = {item["PK"]["S"] for item in store.items() if item["SK"]["S"][:10] == "CSRC#SHARD"}
    assert shards == {keys.catalog_shards(current)}
    assert {model["provider"] for model in api.walk(4)} == {"old"}


def test_a_sweep_keeps_what_another_loader_has_made_current(api: CatalogApi) -> None:
    source = "catalogs: [{id: a, type: yaml, properties: {yamlCatalogPath: m.yaml}}]"
    api.write(sources=source, m=_models(2, "old"))
    api.load()
    read_before = catalog.current()
    api.write(m=_models(2, "new"))
    api.load()
    catalog.sweep(read_before, now_ms(), unfinished=False)
    assert [model["provider"] for model in api.walk(4)] == ["new", "new"]


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

    readers = [threading.Thread(target=read) for _ in range(8)]
    for reader in readers:
        reader.start()
    for number in range(1, 9):
        api.write(m=_models(30 + number, f"g{number}"))
        api.load()
    ended.set()
    for reader in readers:
        reader.join()
    assert not failures
    assert len(walks) >= 8
    for walk in walks:
        (mark,) = {model["provider"] for model in walk}
        assert [model["name"] for model in walk] == [
            f"m{at:03}" for at in range(30 + int(mark[1:]))
        ]


def test_a_large_source_is_loaded_or_refused_as_a_whole(
    api: CatalogApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two MB of YAML; ``CATALOG_SOURCE=50000`` loads so many models with two artifacts each, within
    the loader's memory, where the engine has a process of its own."""
    count = int(os.environ.get("CATALOG_SOURCE", "0"))
    source = "catalogs: [{id: a, type: yaml, properties: {yamlCatalogPath: m.yaml}}]"
    artifacts = ", ".join(performance(latency, 2, "A10", 1) for latency in (50, 60))
    many = "models:" + "".join(
        f"\n- {{name: m{at}, provider: p, artifacts: [{artifacts}]}}" for at in range(count)
    )
    api.write(sources=source, m=many if count else _models(680, "big"))
    assert api.load()["models"] == (count or 680)
    if count:
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2_000_000
    before = api.get("models")["items"]
    monkeypatch.setattr("catalog_loader.entry_parsing.MAX_ENTRIES", 100)
    api.write(m=_models(101, "more"))
    assert api.load()["errors"] == 1
    (source_shown,) = api.get("sources")["items"]
    assert "more than 100" in source_shown["error"]
    assert api.get("models")["items"] == before


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


def test_named_queries_of_one_workspace_are_its_own(
    filled: CatalogApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable_workspaces(monkeypatch, "team", "others")
    folder = tmp_path / "workspaces" / "team"
    folder.mkdir(parents=True)
    (folder / "sources.yaml").write_text(
        "namedQueries: {secret: {assetType: mcp_servers, filters: {name: {operator: '=', "
        "value: disk}}}, remote: {assetType: mcp_servers, filters: {name: {operator: '=', "
        "value: files}}}, fast: {filters: {name: {operator: '=', value: gamma}}}}"
    )
    assert filled.load()["errors"] == 0
    servers = f"{SERVERS}/mcp_servers"
    for _ in range(2):  # then from the cache
        for workspace, listed in (("others", ["forge"]), ("team", ["files"])):
            filled.headers = {"x-mlflow-workspace": workspace}
            assert filled.names(servers, namedQuery="remote") == listed
            fast = filled.get("models/filter_options")["namedQueries"]["fast"]
            assert ("name" in fast) == (workspace == "team")
            options = filled.get(f"{servers}/filter_options")["namedQueries"]
            assert ("secret" in options) == (workspace == "team")
            status = filled.ask("GET", servers, namedQuery="secret").status
            assert status == (200 if workspace == "team" else 400)


def test_before_the_first_load_every_order_and_filter_finds_nothing(api: CatalogApi) -> None:
    for by in ("size.double_value", "artifacts.size.double_value", "ACCURACY"):
        assert api.get("models", orderBy=by)["items"] == []
    assert api.get("models", filterQuery="size.int_value > 3")["items"] == []
    assert api.get("models", recommendations="true", rpsProperty="rate")["items"] == []


def test_a_model_is_registered_once_whatever_happens(filled: CatalogApi) -> None:
    registry = KubeflowApi()
    path, body = f"{ALPHA}:register", '{"name": "alpha", "versionName": "first"}'
    for write in range(1, 30):
        with killed_at(write):
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
    other = "sources/open/models/org/beta:register"
    assert filled.ask("POST", other, body).status == 409
    assert filled.ask("POST", other, '{"nme": "x"}').status == 400
    assert filled.ask("POST", "sources/open/models/none:register").status == 404
