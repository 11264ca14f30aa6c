"""Reads a server with the official client of the Model Context Protocol; run by test_mcp.py in an
environment that has it."""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import version
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

URL, PASSWORD = sys.argv[1:3]
FACTS: dict[str, str] = json.loads(sys.argv[3])
KEYS: dict[str, str] = json.loads(sys.argv[4])
"""Tokens of the administrator's keys by their scope."""
MISSING = {
    "run": "f" * 32,
    "trace": "tr-" + "f" * 32,
    "prompt": "prompt-of-nobody",
}


async def text_of(client: Any, tool: str, /, **arguments: Any) -> tuple[bool, str]:
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    return bool(result.is_error), str(content.text)


async def read(client: Any, tool: str, /, **arguments: Any) -> Any:
    failed, text = await text_of(client, tool, **arguments)
    assert not failed, (tool, text)
    return json.loads(text)


async def reads_all(client: Any) -> None:
    """What the administrator sees."""
    names = {tool.name for tool in (await client.list_tools()).tools}
    assert len(names) == 11, names
    listed = await read(client, "search_experiments", filter="name LIKE 'of %'")
    assert {experiment["name"] for experiment in listed["experiments"]} == {"of all", "of few"}, (
        listed
    )
    for whose in ("open", "closed"):
        experiment = FACTS[f"{whose}_experiment"]
        runs = await read(client, "search_runs", experiment_ids=[experiment], max_results=1)
        assert [run["info"]["run_id"] for run in runs["runs"]] == [FACTS[f"{whose}_run"]], runs
        run = await read(client, "get_run", run_id=FACTS[f"{whose}_run"])
        assert run["run"]["data"]["metrics"][0]["value"] == 0.25, run
        points = await read(
            client, "get_metric_history", run_id=FACTS[f"{whose}_run"], metric_key="loss"
        )
        assert [metric["value"] for metric in points["metrics"]] == [0.5, 0.25], points
        traces = await read(client, "search_traces", experiment_ids=[experiment])
        assert [trace["trace_id"] for trace in traces["traces"]] == [FACTS[f"{whose}_trace"]], (
            traces
        )
        trace = await read(client, "get_trace", trace_id=FACTS[f"{whose}_trace"])
        assert f"{whose} words" in json.dumps(trace), trace
        prompt = await read(client, "get_prompt", name=f"{whose}-prompt", version="1")
        assert prompt["template"] == f"{whose} {{{{question}}}}", prompt
    models = await read(client, "search_models")
    assert {registered_model["name"] for registered_model in models["registered_models"]} == {
        "open-model",
        "closed-model",
    }
    versions = await read(client, "search_model_versions", filter="name = 'closed-model'")
    assert len(versions["model_versions"]) == 1, versions
    prompts = await read(client, "search_prompts", filter="name LIKE 'closed%'")
    assert [registered_model["name"] for registered_model in prompts["registered_models"]] == [
        "closed-prompt"
    ], prompts
    rows = await read(client, "query_system_tables", sql="SELECT 1 + 1 AS two")
    assert rows["rows"] == [[2]], rows


async def reads_little(client: Any) -> None:
    """What Ann sees, who was denied one of each."""
    run = await read(client, "get_run", run_id=FACTS["open_run"])
    assert run["run"]["info"]["run_id"] == FACTS["open_run"]
    texts = []
    for name, arguments in (
        ("search_experiments", {}),
        ("search_experiments", {"filter": "name = 'of few'"}),
        ("search_models", {}),
        ("search_models", {"filter": "name LIKE 'closed%'"}),
        ("search_prompts", {}),
        ("search_runs", {"experiment_ids": [FACTS["closed_experiment"]]}),
        ("search_traces", {"experiment_ids": [FACTS["closed_experiment"]]}),
        ("search_model_versions", {"filter": "name = 'closed-model'"}),
        ("query_system_tables", {"sql": "SELECT name FROM system.mlflow.experiments_latest"}),
        ("get_metric_history", {"run_id": FACTS["closed_run"], "metric_key": "loss"}),
    ):
        texts.append((name, (await text_of(client, name, **arguments))[1]))
    for name, text in texts:
        for secret in ("of few", "closed-", "closed words", "0.25", FACTS["closed_trace"]):
            assert secret not in text, (name, text)
    # What is denied and what does not exist give the same answer, so ids cannot be guessed.
    for name, key, kind in (
        ("get_run", "run_id", "run"),
        ("get_trace", "trace_id", "trace"),
    ):
        denied = await text_of(client, name, **{key: FACTS[f"closed_{kind}"]})
        missing = await text_of(client, name, **{key: MISSING[kind]})
        assert denied[0], denied
        assert denied[1].replace(FACTS[f"closed_{kind}"], MISSING[kind]) == missing[1], denied
    denied = await text_of(client, "get_prompt", name="closed-prompt", version="1")
    missing = await text_of(client, "get_prompt", name=MISSING["prompt"], version="1")
    assert denied[0], denied
    assert denied[1].replace("closed-prompt", MISSING["prompt"]) == missing[1], (denied, missing)


async def reads_by_key(client: Any, scope: str) -> None:
    """What a key of the administrator's opens: at most its scope."""
    opened, other = ("open", "closed") if scope.startswith("experiment:") else ("closed", "open")
    allowed, refused = [], []
    calls = allowed if scope == "read" or opened == "open" else refused
    calls.append(("get_run", {"run_id": FACTS[f"{opened}_run"]}, "0.25"))
    calls.append(("get_trace", {"trace_id": FACTS[f"{opened}_trace"]}, f"{opened} words"))
    more = allowed if scope == "read" else refused
    more.append(("get_run", {"run_id": FACTS[f"{other}_run"]}, "0.25"))
    more.append(("search_prompts", {}, f"{other}-prompt"))
    more.append(("search_models", {}, f"{other}-model"))
    more.append(("search_experiments", {"filter": "name LIKE 'of %'"}, "of few"))
    statement = "SELECT 'a' || 'b' AS letters"
    (allowed if scope == "sql" else refused).append(
        ("query_system_tables", {"sql": statement}, '"ab"')
    )
    for name, arguments, words in allowed:
        failed, text = await text_of(client, name, **arguments)
        assert (failed, words in text) == (False, True), (scope, name, text)
    for name, arguments, words in refused:
        _, text = await text_of(client, name, **arguments)
        assert words not in text, (scope, name, text)


async def main() -> None:
    for user, reading in (("admin", reads_all), ("ann", reads_little)):
        async with (
            httpx2.AsyncClient(auth=(user, PASSWORD), timeout=60) as http,
            Client(streamable_http_client(f"{URL}/mcp", http_client=http)) as client,
        ):
            await reading(client)
    for scope, token in KEYS.items():
        headers = {"authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{URL}/mcp", http_client=http)) as client,
        ):
            await reads_by_key(client, scope)
    async with httpx2.AsyncClient(auth=("ann", "wrong")) as http:
        answer = await http.post(
            f"{URL}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        )
        assert answer.status_code == 401, answer.text


asyncio.run(main())
sys.stdout.write(f"ok {version('mcp')}\n")
