"""What the catalog of models and MCP servers answers."""

from __future__ import annotations

from typing import Any

import pytest

from mlcore.db import capacity
from mlcore.process_cache import clear
from tests.contract.catalog_api import FILES, SERVERS, CatalogApi, form
from tests.contract.conftest import Store

ALPHA = "sources/open/models/org/Alpha"


def test_sources_and_labels(shared: CatalogApi) -> None:
    sources = {item["id"]: item for item in shared.get("sources")["items"]}
    assert {name: source["status"] for name, source in sources.items()} == {
        "lab": "available",
        "off": "disabled",
        "open": "available",
    }
    assert sources["open"]["labels"] == ["Open"]
    assert shared.names("sources", name="OPEN") == ["Open models"]
    assert shared.names("sources", assetType="mcp_servers") == ["Tools"]
    assert shared.names("sources", assetType="anything") == []
    assert shared.names("sources", orderBy="NAME", sortOrder="DESC")[0] == "Switched off"
    assert shared.names("labels") == ["Open", None]
    assert shared.names("labels", orderBy="priority", sortOrder="DESC") == ["Open", None]
    assert shared.ask("GET", "labels", assetType="agents").status == 400
    assert shared.ask("GET", "sources", orderBy="SIZE").status == 400


QUERIES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["gamma", "lab/one", "org/Alpha", "org/beta"]),
    ({"source": "lab,open", "q": "ORG"}, ["org/Alpha", "org/beta"]),
    ({"source": ["lab", "open"], "q": "first of"}, ["org/Alpha"]),
    ({"sourceLabel": "open"}, ["gamma", "org/Alpha", "org/beta"]),
    ({"sourceLabel": "null"}, ["lab/one"]),
    ({"sourceLabel": "nobody's"}, []),
    ({"filterQuery": "language = 'de'"}, ["org/Alpha"]),
    ({"filterQuery": "language != 'de'"}, ["org/beta"]),
    ({"filterQuery": "language IN ('fr', 'de') AND license LIKE 'M%'"}, ["org/beta"]),
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


@pytest.mark.parametrize(("query", "expected"), QUERIES, ids=lambda value: str(value)[:60])
def test_models(shared: CatalogApi, query: dict[str, Any], expected: list[str]) -> None:
    names = shared.names("models", **query)
    if "orderBy" in query and query["orderBy"] != "NAME":
        names = names[: len(expected)]
    assert names == expected


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
        ("models", {"pageSize": "-+5"}, 400),
        ("models", {"pageSize": "+5"}, 200),
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
        (f"{ALPHA}/artifacts/performance", {"targetRPS": "-1"}, 400),
        (f"{ALPHA}/artifacts/performance", {"recommendations": "yes"}, 400),
        ("models", {"recommendations": "True", "targetRPS": "0"}, 200),
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
    items = shared.get(f"{ALPHA}/artifacts")["items"]
    kinds = [item.get("metricsType", item["artifactType"]) for item in items]
    # As the file has them, and as their ids ascend.
    assert kinds == ["model-artifact", *["performance-metrics"] * 3, "accuracy-metrics"]
    assert shared.get(f"{ALPHA}/artifacts", orderBy="ID")["items"] == items
    # Of a rate of 0 nothing is said.
    measured = shared.get(f"{ALPHA}/artifacts/performance", targetRPS=0)["items"]
    assert measured == items[1:4]
    (model,) = shared.get(f"{ALPHA}/artifacts", artifactType="model-artifact")["items"]
    assert (model["uri"], model["createTimeSinceEpoch"]) == (
        "oci://registry/alpha:1",
        "1700000000000",
    )
    listed = shared.get(f"{ALPHA}/artifacts", orderBy="ttft_p90.double_value", sortOrder="DESC")
    latencies = [
        item["customProperties"].get("ttft_p90", {}).get("double_value") for item in listed["items"]
    ]
    assert latencies == [300.0, 80.0, 50.0, None, None]


def test_what_hardware_is_worth_its_price(shared: CatalogApi) -> None:
    path = f"{ALPHA}/artifacts/performance"
    items = shared.get(path, targetRPS=9, orderBy="ttft_p90.double_value")["items"]
    replicas = [item["customProperties"]["replicas"]["int_value"] for item in items]
    assert replicas == ["2", "3", "5"]
    best = shared.get(path, targetRPS=9, recommendations="true")["items"]
    # Of the H100, two of two cost 4 and are faster than three of one, which cost 3.
    assert [item["customProperties"]["ttft_p90"]["double_value"] for item in best] == [300, 50, 80]


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
    assert (server["name"], server["toolCount"], "tools" in server) == ("forge", 3, False)
    path = f"{SERVERS}/mcp_servers/{server['id']}"
    shown = shared.get(path, includeTools="true", toolLimit=1)
    assert [tool["name"] for tool in shown["tools"]] == ["search"]
    assert shared.names(f"{path}/tools") == ["count", "delete", "search"]
    read_only = shared.names(f"{path}/tools", filterQuery="accessType = 'read_only'")
    assert read_only == ["count", "search"]
    assert shared.get(f"{path}/tools/search")["serverName"] == "forge"
    assert shared.ask("GET", f"{path}/tools/none").status == 404
    assert shared.names(f"{SERVERS}/mcp_servers", filterQuery="sast = true") == ["forge"]
    assert shared.names(f"{SERVERS}/mcp_servers", name="FIL") == ["files"]


def test_every_entry_has_what_its_schema_demands(shared: CatalogApi) -> None:
    """Times, also where its source says none: those of its load. A tool has an access type."""
    times = ("createTimeSinceEpoch", "lastUpdateTimeSinceEpoch")
    servers = shared.get(f"{SERVERS}/mcp_servers", includeTools="true", pageSize="100")["items"]
    tools = [tool for server in servers for tool in server.get("tools", ())]
    models = shared.get("models", pageSize="100")["items"]
    artifacts = [
        artifact
        for model in models
        for artifact in shared.get(
            f"sources/{model['source_id']}/models/{model['name']}/artifacts"
        )["items"]
    ]
    assert servers
    assert tools
    assert artifacts
    for entry in [*servers, *tools, *models, *artifacts]:
        assert all(int(entry[name]) > 0 for name in times), entry
    by_name = {model["name"]: model for model in models}
    assert by_name["org/Alpha"]["createTimeSinceEpoch"] == "1700000000000"
    assert int(by_name["org/beta"]["createTimeSinceEpoch"]) > 1_700_000_000_000
    assert {tool["name"]: tool["accessType"] for tool in tools} == {
        "search": "read_only",
        "delete": "destructive",
        "count": "read_only",
    }


def test_licenses_are_shown_by_their_names(shared: CatalogApi) -> None:
    shown = {model["name"]: model.get("license") for model in shared.get("models")["items"]}
    assert (shown["org/Alpha"], shown["org/beta"]) == ("Apache 2.0", "MIT")
    assert shared.names("models", filterQuery="license = 'Apache 2.0'") == ["org/Alpha"]
    options = shared.get("models/filter_options")["filters"]["license"]["values"]
    assert options == ["Apache 2.0", "MIT"]
    assert shared.names(f"{SERVERS}/mcp_servers", filterQuery="license = 'Own words'") == ["forge"]


def test_what_lacks_the_value_of_an_order_is_last_by_its_id(shared: CatalogApi) -> None:
    path = f"{ALPHA}/artifacts"
    ids = [int(item["id"]) for item in shared.get(path, orderBy="ID")["items"]]
    assert ids == sorted(ids)
    for direction in ("ASC", "DESC"):
        order = {"orderBy": "unknown.double_value", "sortOrder": direction}
        assert [int(item["id"]) for item in shared.get(path, **order)["items"]] == ids, direction
        order = {"orderBy": "overall_average.double_value", "sortOrder": direction}
        ordered = [int(item["id"]) for item in shared.get(path, **order)["items"]]
        assert ordered[1:] == sorted(ordered[1:]), direction


def test_an_asset_type_that_there_is_not(shared: CatalogApi) -> None:
    refused = shared.ask("GET", "labels", assetType="cars")
    assert refused.status == 400
    assert refused.body["message"] == (
        "invalid value 'cars' for CatalogAssetType: valid values are [models mcp_servers]"
    )


def test_the_picture_of_a_server(shared: CatalogApi) -> None:
    def logo(name: str) -> Any:
        (server,) = shared.get(f"{SERVERS}/mcp_servers", name=name)["items"]
        return shared.ask("GET", f"{SERVERS}/mcp_servers/{server['id']}/logo")

    assert (logo("forge").status, logo("forge").headers["location"]) == (
        302,
        "https://forge.example/logo.png",
    )
    assert (logo("files").status, logo("disk").status, logo("script").status) == (404, 200, 415)
    assert logo("disk").headers["content-type"] == "image/png"
    assert shared.ask("GET", f"{SERVERS}/mcp_servers/x/logo").status == 400


def test_both_versions_answer_alike_and_the_old_one_says_so(shared: CatalogApi) -> None:
    old = shared.get("models")
    assert shared.get("/api/model_catalog/v1/models") == old


def test_a_list_is_one_round_trip_and_the_first_three(shared: CatalogApi) -> None:
    clear()
    counts = []
    for _ in range(2):
        shared.get("models", filterQuery="artifacts.ttft_p90 < 70")
        last = capacity.last_measurement()
        assert last is not None
        counts.append(last.round_trips)
    assert counts == [3, 1]


def test_a_preview_reads_and_writes_nothing(shared: CatalogApi) -> None:
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
