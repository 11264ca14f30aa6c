"""The artifact function where a live comparison does not reach: workspaces, locations, redirects,
uploads in parts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

import runs.app
from artifacts import file_responses
from mlcore import artifacts as port
from mlcore.artifacts import safe_path
from mlcore.artifacts.local_folder_store import Folder
from mlcore.db import capacity
from mlcore.errors import TemporarilyUnavailable
from mlcore.http import Request
from tests.contract.artifact_service import LIST, MLFLOW, PROXY, Service
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.prompt_runs import TRIED


@pytest.fixture
def service(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path / "artifacts"))
    monkeypatch.setenv("ARTIFACT_BUCKET", "own-bucket")
    enable_workspaces(monkeypatch, "team", "other")
    port.store.cache_clear()
    made = port.store()
    assert isinstance(made, Folder)
    yield Service(made)
    port.store.cache_clear()


def test_a_workspace_sees_its_own_files_only(service: Service) -> None:
    for workspace in ("default", "team", "other"):
        service.workspace = workspace
        service.ask("PUT", f"{PROXY}artifacts/1/a", workspace.encode())
    assert service.folder.get("workspaces/team/1/a") == b"team"
    for workspace in ("default", "team", "other"):
        service.workspace = workspace
        assert service.ask("GET", f"{PROXY}artifacts/1/a").body == workspace.encode()
        listed = service.ask("GET", f"{PROXY}artifacts").json["files"]
        assert [file["path"] for file in listed] == ["1"]
    service.workspace = "team"
    assert service.ask("GET", f"{PROXY}artifacts/workspaces/team/1/a").body == b"team"
    for path in ("workspaces/other/1/a", "workspaces", "workspaces/default/1/a"):
        for method in ("GET", "PUT", "DELETE"):
            assert service.ask(method, f"{PROXY}artifacts/{path}", b"x").status == 400
        fields = {"path": "a", "num_parts": 1}
        assert service.post(f"{PROXY}mpu/create/{path}", fields).status == 400
    assert service.ask("DELETE", f"{PROXY}artifacts/").status == 400
    assert service.folder.get("1/a") == b"default"


def test_a_run_of_another_workspace_is_missing(service: Service) -> None:
    run_id, _ = service.run("e")
    assert service.list_run(run_id).status == 200
    service.workspace = "team"
    for path, name in (("/get-artifact", "run_uuid"), (LIST, "run_id")):
        answer = service.ask("GET", path, query={name: run_id, "path": "a"})
        assert answer.status == 404
        assert answer.json["message"] == f"Run with id={run_id} not found"
    upload = {"run_uuid": run_id, "path": "a"}
    path = "/ajax-api/2.0/mlflow/upload-artifact"
    assert service.ask("POST", path, b"x", query=upload).status == 404


def test_what_the_product_keeps_is_hidden(service: Service) -> None:
    service.folder.put(port.internal_key("default", "spans/1"), b"secret")
    assert service.ask("GET", f"{PROXY}artifacts").json == {}
    for path in (".internal/spans/1", "./.internal/spans/1", "%2einternal/spans/1"):
        assert service.ask("GET", f"{PROXY}artifacts/{path}").status == 400


@pytest.mark.parametrize(
    "location",
    ["file:///etc", "/etc", "s3://another/x", "gs://bucket", "s3://own-bucket/workspaces/team",
     "s3://own-bucket/.internal"],
)  # fmt: skip
def test_locations_that_are_not_ours(service: Service, location: str) -> None:
    run_id, _ = service.run("e", artifact_location=location)
    answers = [
        service.list_run(run_id),
        service.ask("GET", "/get-artifact", query={"run_id": run_id, "path": "passwd"}),
        service.post(
            "/api/2.0/mlflow/artifacts/presigned-download-url", {"run_id": run_id, "path": "a"}
        ),
    ]
    assert [answer.status for answer in answers] == [400] * 3
    assert {answer.json["error_code"] for answer in answers} == {"INVALID_PARAMETER_VALUE"}


NUMBERS = itertools.count()


def _try_prompt(service: Service, more: dict[str, Any], **location: str) -> Any:
    """The run that is made of a prompt in a new experiment, which is stored as it was answered."""
    of_experiment, _ = service.run(f"e{next(NUMBERS)}", **location)
    run = service.ask("GET", f"{MLFLOW}runs/get", None, runs.app, {"run_id": of_experiment}).json
    fields = {"experiment_id": run["run"]["info"]["experiment_id"], **TRIED, **more}
    answer = service.post(
        "/ajax-api/2.0/mlflow/runs/create-promptlab-run", fields, function=runs.app
    )
    assert answer.status == 200, answer
    made = answer.json["run"]
    query = {"run_id": made["info"]["run_id"]}
    assert service.ask("GET", f"{MLFLOW}runs/get", None, runs.app, query).json["run"] == made
    assert made["info"]["end_time"] > made["info"]["start_time"]
    return made


def _values(pairs: list[dict[str, str]]) -> dict[str, str]:
    return {pair["key"]: pair["value"] for pair in pairs}


@pytest.mark.parametrize("workspace", ["default", "team"])
def test_a_run_of_the_prompt_lab(service: Service, workspace: str) -> None:
    service.workspace = workspace
    made = _try_prompt(service, {})
    info, tags = made["info"], _values(made["data"]["tags"])
    assert (info["status"], info["run_name"], info["user_id"]) == ("FINISHED", "tried", "ann")
    assert _values(made["data"]["params"]) == {
        "temperature": "0.5",
        "stop": "None",
        "model_route": "chat",
        "prompt_template": TRIED["prompt_template"],
    }
    [model] = json.loads(tags.pop("mlflow.log-model.history"))
    assert tags == {
        "t": "v",
        "mlflow.runName": "tried",
        "mlflow.runSourceType": "PROMPT_ENGINEERING",
        "mlflow.loggedArtifacts": '[{"path": "eval_results_table.json", "type": "table"}]',
    }
    folder = urlsplit(info["artifact_uri"]).path.lstrip("/")
    assert folder.startswith("workspaces/team/") == (workspace == "team")
    table = json.loads(service.folder.get(f"{folder}/eval_results_table.json") or b"")
    assert table["columns"] == ["thing", "prompt", "output", "tokens"]
    assert table["data"] == [["é: ☃", "Say hello", "Hello", "7"]]
    described = yaml.safe_load(service.folder.get(f"{folder}/model/MLmodel") or b"")
    for key in ("run_id", "model_uuid", "utc_time_created", "artifact_path"):
        assert described[key] == model[key]
    assert model["run_id"] == info["run_id"]
    given = yaml.safe_load(service.folder.get(f"{folder}/model/parameters.yaml") or b"")
    assert given["prompt_parameters"] == {"thing": "é: ☃"}
    assert given["prompt_template"] == TRIED["prompt_template"]
    again = _try_prompt(service, {"experiment_id": info["experiment_id"], "run_name": None})
    assert again["info"]["run_id"] != info["run_id"]
    assert again["info"]["run_name"] not in {"", "tried"}


def test_a_run_of_the_prompt_lab_whose_params_break_a_rule(service: Service) -> None:
    for name in ("bad~key", "model_route", "k" * 251):
        made = _try_prompt(service, {"model_parameters": [{"key": name, "value": "v"}]})
        assert made["info"]["status"] == "FAILED"
        assert made["data"].keys() == {"tags"}
        assert _values(made["data"]["tags"]) == {"t": "v", "mlflow.runName": "tried"}
        assert service.list_run(made["info"]["run_id"]).json.get("files", []) == []


@pytest.mark.parametrize("storage", ["s3://another/x", "a store that does not answer"])
def test_a_run_of_the_prompt_lab_without_its_files(
    service: Service, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(key: str, data: bytes) -> None:
        if key.endswith("conda.yaml"):
            raise TemporarilyUnavailable("The store does not answer.")

    monkeypatch.setattr(service.folder, "put", put)
    location = {"artifact_location": storage} if storage.startswith("s3") else {}
    made = _try_prompt(service, {}, **location)
    assert made["info"]["status"] == "FAILED"
    assert len(made["data"]["params"]) == 4
    assert "mlflow.log-model.history" in _values(made["data"]["tags"])


def test_a_location_in_our_own_bucket(service: Service) -> None:
    run_id, folder = service.run("e", artifact_location="s3://own-bucket/x")
    service.folder.put(f"x/{folder.removeprefix('x/')}/a.txt", b"12345")
    [file] = service.list_run(run_id).json["files"]
    assert file == {"path": "a.txt", "is_dir": False, "file_size": 5}
    rpc = "/api/2.0/mlflow/artifacts/presigned-"
    got = service.post(f"{rpc}download-url", {"run_id": run_id, "path": "a.txt"}).json
    assert got["file_size"] == 5
    assert urlsplit(got["presigned_url"]).netloc == "h:1"
    fields = {"run_id": run_id, "path": "b.png", "expiration": 60}
    put = service.post(f"{rpc}upload-url", fields).json
    assert put["headers"] == {"Content-Type": "image/png"}
    for wrong in ({"expiration": 0}, {"expiration": 604_801}, {"path": "../x"}, {"path": ""}):
        assert service.post(f"{rpc}upload-url", {**fields, **wrong}).status == 400
        assert service.post(f"{rpc}download-url", {**fields, **wrong}).status == 400


def test_what_cannot_pass_is_redirected(service: Service) -> None:
    """A body that a front kept back, and bytes that were called text."""
    path = f"{PROXY}artifacts/1/a%b.txt"
    for body, headers in ((None, {"content-length": "70000000"}), ("caf\ufffd", {})):
        answer = service.ask("PUT", path, body, **headers)
        assert answer.status == 307
        target = urlsplit(answer.headers["location"])
        signed = service.folder.signer.check("PUT", target.path, target.query)
        assert signed is not None
        assert signed[0] == "1/a%b.txt"
    assert service.ask("PUT", path, None, **{"content-length": "0"}).status == 200
    assert service.folder.get("1/a%b.txt") == b""
    service.folder.put("large", bytes((1 << 20) + 1))
    answer = service.ask("GET", f"{PROXY}artifacts/large", **{"x-forwarded-proto": "https"})
    assert answer.status == 307
    assert answer.headers["location"].startswith("https://h:1/artifact-storage/large?")
    assert answer.headers["cache-control"] == "no-store"


def test_an_upload_in_parts(service: Service) -> None:
    fields = {"path": "C:\\Users\\me\\w.bin", "num_parts": 2}
    made = service.post(f"{PROXY}mpu/create/1/d", fields).json
    assert [credential["part_number"] for credential in made["credentials"]] == [1, 2]
    parts = []
    for credential in made["credentials"]:
        target = urlsplit(credential["url"])
        signed = service.folder.signer.check("PUT", target.path, target.query)
        assert signed is not None
        key, arguments = signed
        incoming = service.folder.open_part_for_writing(
            key, arguments["upload"], int(arguments["part"])
        )
        incoming.write(b"%d" % credential["part_number"])
        parts.append(
            {"part_number": credential["part_number"], "etag": incoming.commit(), "url": "u"}
        )
    end = {"path": "w.bin", "upload_id": made["upload_id"], "parts": parts}
    for wrong in ({"parts": []}, {"parts": parts[::-1]}, {"path": "."}):
        assert service.post(f"{PROXY}mpu/complete/1/d", {**end, **wrong}).status == 400
    assert service.post(f"{PROXY}mpu/complete/1", end).status == 404
    for _ in range(2):
        assert service.post(f"{PROXY}mpu/complete/1/d", end).json == {}
    assert service.ask("GET", f"{PROXY}artifacts/1/d/w.bin").body == b"12"
    assert service.post(f"{PROXY}mpu/abort/1/d", end).json == {}
    assert service.folder.get("1/d/w.bin") == b"12"


def test_an_empty_file_in_parts(service: Service) -> None:
    """Clients count no part in it, and send as many as they are told."""
    made = service.post(f"{PROXY}mpu/create/1", {"path": "/tmp/empty", "num_parts": 0}).json
    assert [part["part_number"] for part in made["credentials"]] == [1]
    incoming = service.folder.open_part_for_writing("1/empty", made["upload_id"], 1)
    parts = [{"part_number": 1, "etag": incoming.commit()}]
    fields = {"path": "/tmp/empty", "upload_id": made["upload_id"], "parts": parts}
    for _ in range(2):
        assert service.post(f"{PROXY}mpu/complete/1", fields).status == 200
    assert service.folder.get("1/empty") == b""


@pytest.mark.parametrize(
    "name", ["what?.txt", "100%.txt", "a+b c.txt", "é日.txt", "~(a)=b;c,'.txt"]
)
def test_names_come_back(service: Service, name: str) -> None:
    """Paths come decoded, as API Gateway passes them."""
    path = f"{PROXY}artifacts/1/{name}"
    assert service.ask("PUT", path, b"x").status == 200
    assert service.folder.get(f"1/{name}") == b"x"
    listed = service.ask("GET", f"{PROXY}artifacts", query={"path": "1"}).json
    assert [file["path"] for file in listed["files"]] == [name]
    assert service.ask("GET", path).body == b"x"
    assert service.ask("GET", f"{PROXY}presigned/1/{name}").json["file_size"] == 1
    assert service.ask("DELETE", path).status == 200
    assert service.folder.list("") == []


@pytest.mark.parametrize(
    "name", ["a%20b", "100%25", "what%3F.txt", "a%2541b", "a\nb", "b\x07", "b?"]
)
def test_no_other_name_is_written(service: Service, name: str) -> None:
    other = safe_path(name)
    service.folder.put(f"1/{other}", b"other")
    upload = {"path": f"/tmp/{name}", "num_parts": 1, "parts": [{"part_number": 1}]}
    for method, path, body in (
        ("PUT", f"artifacts/1/{name}", b"x"),
        ("DELETE", f"artifacts/1/{name}", None),
        ("POST", "mpu/create/1", json.dumps(upload)),
        ("POST", f"mpu/create/{name}", json.dumps({**upload, "path": "a"})),
        ("POST", "mpu/complete/1", json.dumps(upload)),
    ):
        answer = service.ask(method, PROXY + path, body)
        assert answer.status == 400, path
        assert answer.json["message"].startswith("Invalid path")
    assert service.folder.get(f"1/{other}") == b"other"
    assert [entry.name for entry in service.folder.list("1")] == [other]
    # Reading goes on, as MLflow's server does.
    assert service.ask("GET", f"{PROXY}artifacts/1/{name}").body == b"other"


def test_a_question_mark_that_was_not_encoded(service: Service) -> None:
    """MLflow's client sends "what?.txt" so."""
    service.folder.put("1/what", b"other")
    for method, path in (("PUT", "artifacts/1/what"), ("DELETE", "artifacts/1/what")):
        answer = service.ask(method, PROXY + path, b"x", query={".txt": ""})
        assert answer.status == 400
        assert "percent-encoded" in answer.json["message"]
    assert service.folder.get("1/what") == b"other"


@pytest.mark.parametrize("count", [-1, 10_001, 1 << 40])
def test_too_many_parts(service: Service, count: int) -> None:
    answer = service.post(f"{PROXY}mpu/create/1", {"path": "a", "num_parts": count})
    assert answer.status == 400
    assert "MLFLOW_MULTIPART_UPLOAD_CHUNK_SIZE" in answer.json["message"]


def test_budgets(service: Service) -> None:
    run_id, folder = service.run("e")
    service.ask("PUT", f"{PROXY}artifacts/{folder}/a", b"x")
    for answer, round_trips in (
        (lambda: service.ask("GET", f"{PROXY}artifacts/{folder}/a"), 0),
        (lambda: service.list_run(run_id), 1),
        (lambda: service.ask("GET", "/get-artifact", query={"run_id": run_id, "path": "a"}), 1),
    ):
        assert answer().status == 200
        cost = capacity.last_measurement()
        assert cost is not None
        assert cost.round_trips == round_trips


def test_conditional_downloads(service: Service) -> None:
    path = f"{PROXY}artifacts/1/a.txt"
    service.ask("PUT", path, b"0123456789")
    whole = service.ask("GET", path).headers
    etag, modified = whole["etag"], whole["last-modified"]
    for named in (etag, f"W/{etag}", f'"x",{etag}', "*"):
        for method in ("GET", "HEAD"):
            same = service.ask(method, path, **{"if-none-match": named, "range": "bytes=99-"})
            assert (same.status, same.body) == (304, b"")
            # Caches replace what they know of the file by these.
            assert same.headers["content-type"] == "text/plain"
            assert "content-length" not in same.headers
    assert service.ask("GET", path, **{"if-none-match": f'"x{etag[1:]}'}).status == 200
    for since, status in ((etag, 206), (modified, 206), (f"W/{etag}", 200)):
        part = service.ask("GET", path, **{"range": "bytes=0-1", "if-range": since})
        assert part.status == status


def test_more_ranges_than_an_answer_has(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{PROXY}artifacts/1/a.bin"
    service.ask("PUT", path, bytes(1000))
    for count, status in ((100, 206), (101, 200)):
        ranges = ",".join(f"{at}-{at}" for at in range(0, 2 * count, 2))
        assert service.ask("GET", path, range=f"bytes={ranges}").status == status
    # Parts of a file that just fits a response would not fit.
    monkeypatch.setattr(file_responses, "MAX_INLINE_BYTES", 999)
    monkeypatch.setattr(Request, "is_signed", lambda _request: True)
    assert service.ask("GET", path, range="bytes=0-1").status == 206
    assert service.ask("GET", path, range="bytes=0-1,4-5").status == 200


def test_head_of_a_large_file_is_not_redirected(service: Service) -> None:
    path = f"{PROXY}artifacts/1/a.bin"
    service.folder.put("1/a.bin", bytes((1 << 20) + 1))
    answer = service.ask("HEAD", path)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-length"] == str((1 << 20) + 1)
    assert service.ask("GET", path).status == 307
