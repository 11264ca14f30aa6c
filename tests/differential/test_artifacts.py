"""Files: the proxy and what the UI asks for, against MLflow's server, live."""

from __future__ import annotations

import http.client
import json
import re
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest
import yaml

from tests.differential.rest import AJAX, API

pytestmark = pytest.mark.e2e

PROXY = "/api/2.0/mlflow-artifacts/artifacts"
COMPARED = (
    *("content-type", "content-disposition", "x-content-type-options", "accept-ranges"),
    *("content-length", "content-range"),
)


JSON = "application/json"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def kind(answer: Answer) -> str:
    return answer.headers.get("content-type", "")


class Files:
    """A run on one of the servers."""

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).netloc
        self.root = self.run = self.model = self.experiment = ""
        made = self.json("POST", API + "experiments/create", {"name": f"files {id(self)}"})
        run = self.json("POST", API + "runs/create", made)["run"]["info"]
        self.run, self.experiment = run["run_id"], run["experiment_id"]
        self.root = f"{self.experiment}/{self.run}/artifacts"

    def json(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        answer = self.ask(method, path, data, {"Content-Type": "application/json"})
        return json.loads(answer.body)

    def hidden(self, text: str) -> str:
        """The same text for the same file on either server."""
        models = self.experiment and f"{self.experiment}/models"
        for value in (self.root, self.run, models, self.model):
            text = text.replace(value, "…") if value else text
        return text

    def ask(self, method: str, path: str, body: bytes | None = None, headers: Any = None) -> Answer:
        connection = http.client.HTTPConnection(self._host, timeout=30)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            answer = Answer(response.status, named, response.read())
        finally:
            connection.close()
        if answer.status == 307:
            target = urlsplit(answer.headers["location"])
            assert target.netloc == self._host
            return self.ask(method, f"{target.path}?{target.query}", body, headers)
        return answer

    def put(self, path: str, body: bytes) -> Answer:
        return self.ask("PUT", f"{PROXY}/{self.root}/{path}", body)


class Both:
    def __init__(self, stock: str, product: str) -> None:
        self.sides = Files(stock), Files(product)

    def compare(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """Fails when the two answer differently; ``{root}`` and ``{run}`` are each server's."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        stock, ours = (
            side.ask(
                method, path.format(root=side.root, run=side.run, model=side.model), body, named
            )
            for side in self.sides
        )
        # Stock cannot read its own runs:/ sources, for one.
        assert ours.status == stock.status or (stock.status == 500 and ours.status < 500), path
        if stock.status < 300:
            names = [
                name
                for name in COMPARED
                if name in stock.headers and (name, JSON) != ("content-length", kind(stock))
            ]
            assert [(name, ours.headers.get(name)) for name in names] == [
                (name, stock.headers[name]) for name in names
            ], path
            assert self.content(ours, 1) == self.content(stock, 0), path
        elif stock.status < 500 and b"error_code" in stock.body:
            assert self.content(ours, 1) == self.content(stock, 0), path
        return ours

    def content(self, answer: Answer, side: int) -> Any:
        if kind(answer) != JSON or not answer.body:
            return answer.body
        return json.loads(self.sides[side].hidden(answer.body.decode()))


@pytest.fixture(scope="module")
def both(stock_url: str, product_url: str) -> Both:
    made = Both(stock_url, product_url)
    for side in made.sides:
        for path, size in FILES.items():
            assert side.put(path, b"x" * size).status == 200
    return made


FILES = {
    "a.txt": 5, "empty.bin": 0, "model/MLmodel": 9, "model/data/w.bin": 5_000_000, "b%20c.json": 2,
    "%C3%A9.png": 7, "page.html": 3, "model.tar.gz": 4, "50%25.txt": 1, "q%3Fx": 2, "no_type": 1,
    'quo"te.csv': 3,
}  # fmt: skip
TRICKS = (
    "..", "../x", "a/../../x", "%2e%2e", "%2e%2e/x", "%252e%252e/x", "..%2fx", "..%252fx", "/etc",
    "%2fetc/passwd", "%2Fetc", "//etc", "a%23b", "file:///etc/passwd", "C:/x", "C:%5Cx",
)  # fmt: skip


@pytest.mark.parametrize("path", [*FILES, "model", "none", "model/none", "a.txt/x"])
def test_downloads(both: Both, path: str) -> None:
    both.compare("GET", f"{PROXY}/{{root}}/{path}")
    for route in ("/get-artifact?run_uuid={run}&path=", "/get-artifact?run_id={run}&path="):
        both.compare("GET", route + path)


@pytest.mark.parametrize("path", FILES)
def test_head_names_the_length(both: Both, path: str) -> None:
    """A client takes the length of a file from there."""
    asked = [side.ask("HEAD", f"{PROXY}/{side.root}/{path}") for side in both.sides]
    stock, ours = (answer.headers.get("content-length") for answer in asked)
    assert asked[0].status == asked[1].status
    assert ours == stock == str(FILES[path])


@pytest.mark.parametrize(
    "span",
    [
        *("bytes=0-1", "bytes=2-", "bytes=-2", "bytes=0-99", "bytes=9999999-"),
        *("bytes=-99", f"bytes=0-{2**63 - 1}"),
        *("bytes=4-2", "bytes=5-2", "bytes=-0", "items=0-1", "bytes", "bytes=", "bytes=a-b"),
        *("Bytes=1-1", "bytes=0-1,9999999-", "bytes=0-2,1-3", "bytes=0-1,", "bytes= 1-2"),
        *("bytes=0-1,a-b", "bytes=-,0-1", "bytes=0 - 1,", f"bytes=0-{'9' * 50}", "bytes=-"),
        "bytes=" + "0-0,2-2," * 51,
    ],
)
def test_ranges(both: Both, span: str) -> None:
    paths = ["a.txt", "empty.bin"]
    # A larger file's ranges are cut out by its store, as by S3.
    paths += ["model/data/w.bin"] if span.startswith("bytes") and "," not in span else []
    for path in paths:
        both.compare("GET", f"{PROXY}/{{root}}/{path}", Range=span)


def test_several_ranges_are_parts(both: Both) -> None:
    seen = []
    for side in both.sides:
        answer = side.ask("GET", f"{PROXY}/{side.root}/a.txt", None, {"Range": "bytes=3-3,0-1"})
        form, _, boundary = kind(answer).partition("; boundary=")
        assert answer.headers["content-length"] == str(len(answer.body))
        parts = answer.body.replace(b"\r\n", b"\n").split(f"--{boundary}".encode())
        seen.append((answer.status, form, [part.strip() for part in parts]))
    assert seen[0] == seen[1]
    assert seen[0][0] == 206


def test_a_file_that_the_client_has_is_not_sent_again(both: Both) -> None:
    for side in both.sides:
        path = f"/get-artifact?run_id={side.run}&path=a.txt"
        etag = side.ask("GET", path).headers["etag"]
        again = side.ask("GET", path, None, {"If-None-Match": etag})
        assert (again.status, again.body) == (304, b"")
        other = side.ask("GET", path, None, {"Range": "bytes=0-1", "If-Range": '"other"'})
        assert (other.status, len(other.body)) == (200, FILES["a.txt"])


@pytest.mark.parametrize(
    "path", ["", "model", "model/", "model/data", "a.txt", "none", "model/MLmodel", "b c.json"]
)
def test_listings(both: Both, path: str) -> None:
    query = urlencode({"path": path})
    both.compare("GET", f"{API}artifacts/list?run_id={{run}}&{query}")
    both.compare("GET", f"{AJAX}artifacts/list?run_uuid={{run}}&{query}")
    both.compare("GET", f"{PROXY}?path={{root}}/{path.replace(' ', '+')}")
    both.compare("GET", f"{PROXY}?path={path.replace(' ', '+')}/none")


@pytest.mark.parametrize("path", TRICKS)
def test_paths_that_lead_elsewhere(both: Both, path: str) -> None:
    answers = [
        both.compare("GET", f"{API}artifacts/list?run_id={{run}}&path={path}"),
        both.compare("GET", f"{PROXY}?path={path}"),
        both.compare("GET", f"/get-artifact?run_uuid={{run}}&path={path}"),
        both.compare("POST", f"{AJAX}upload-artifact?run_uuid={{run}}&path={path}", b"x"),
    ]
    assert {answer.status for answer in answers} == {400}
    if path not in {"C:/x", "//etc", "/etc"}:
        for method in ("GET", "PUT", "DELETE"):
            body = b"x" if method == "PUT" else None
            assert both.sides[1].ask(method, f"{PROXY}/{path}", body).status == 400


def test_missing_arguments(both: Both) -> None:
    unknown = "f" * 32
    for path in (
        f"{API}artifacts/list",
        f"{API}artifacts/list?run_id={unknown}",
        f"/get-artifact?run_id={unknown}&path=a",
        "/get-artifact?path=a",
        "/get-artifact?run_id={run}",
        f"/ajax-api/2.0/mlflow/logged-models/{unknown}/artifacts/files",
    ):
        both.compare("GET", path)
    for path in (
        "?path=a",
        "?run_uuid={run}",
        "?run_uuid={run}&path=",
        f"?run_uuid={unknown}&path=a",
    ):
        both.compare("POST", f"{AJAX}upload-artifact{path}", b"x")
    both.compare("POST", f"{AJAX}upload-artifact?run_uuid={{run}}&path=a", b"")
    for rpc in ("presigned-upload-url", "presigned-download-url"):
        for body in ({}, {"path": "a"}, {"run_id": unknown, "path": "a"}, {"path": "../a"}):
            data = json.dumps(body).encode()
            both.compare("POST", f"{API}artifacts/{rpc}", data, Content_Type="application/json")


def test_presigned_urls_are_for_direct_locations(both: Both) -> None:
    for rpc in ("presigned-upload-url", "presigned-download-url"):
        answers = [
            side.json("POST", f"{API}artifacts/{rpc}", {"run_id": side.run, "path": "a"})
            for side in both.sides
        ]
        assert answers[0] == answers[1]


def test_uploads_and_deletions(both: Both) -> None:
    both.compare("PUT", f"{PROXY}/{{root}}/new/x.bin", bytes(range(256)))
    both.compare("GET", f"{PROXY}/{{root}}/new/x.bin")
    both.compare("PUT", f"{PROXY}/{{root}}/new/x.bin", b"shorter")
    both.compare("GET", f"{PROXY}/{{root}}/new/x.bin")
    both.compare("POST", f"{AJAX}upload-artifact?run_uuid={{run}}&path=new/d/y.txt", b"y")
    both.compare("GET", f"{PROXY}?path={{root}}/new")
    both.compare("PUT", f"{PROXY}/{{root}}/new/d", b"on a directory")
    both.compare("PUT", f"{PROXY}/{{root}}/new/", b"without a name")
    both.compare("DELETE", f"{PROXY}/{{root}}/new/x.bin")
    both.compare("DELETE", f"{PROXY}/{{root}}/new/x.bin")
    both.compare("GET", f"{PROXY}?path={{root}}/new")
    both.compare("DELETE", f"{PROXY}/{{root}}/new")
    both.compare("GET", f"{PROXY}?path={{root}}/new")
    both.compare("GET", f"{API}artifacts/list?run_id={{run}}")


def test_logged_models_and_model_versions(both: Both) -> None:
    """From a run's folder, from a run by its URI, and from a logged model."""
    for side in both.sides:
        fields = {"experiment_id": side.experiment, "source_run_id": side.run}
        model = side.json("POST", f"{API}logged-models", fields)["model"]["info"]
        side.model, name = model["model_id"], f"m{side.run}"
        root = urlsplit(model["artifact_uri"]).path
        assert side.ask("PUT", f"{PROXY}{root}/MLmodel", b"logged").status == 200
        side.json("POST", f"{API}registered-models/create", {"name": name})
        for source, more in (
            (f"mlflow-artifacts:/{side.root}/model", {"run_id": side.run}),
            (f"runs:/{side.run}/model", {"run_id": side.run}),
            (f"models:/{side.model}", {"model_id": side.model}),
        ):
            fields = {"name": name, "source": source, **more}
            made = side.json("POST", f"{API}model-versions/create", fields)
            assert "model_version" in made, made
    path = f"{AJAX}logged-models/{{model}}/artifacts/"
    both.compare("GET", f"{path}files?artifact_file_path=MLmodel")
    for tail in ("files?artifact_file_path=none", "files?artifact_file_path=../x", "files"):
        both.compare("GET", path + tail)
    for tail in ("directories", "directories?artifact_directory_path=none"):
        answers = [
            json.loads(side.ask("GET", (path + tail).format(model=side.model)).body)
            for side in both.sides
        ]
        assert answers[0].get("files") == answers[1].get("files")
    for version in (1, 2, 3):
        query = f"name=m{{run}}&version={version}"
        both.compare("GET", f"/model-versions/get-artifact?path=MLmodel&{query}")
        both.compare("GET", f"/model-versions/get-artifact?path=..&{query}")
    for query in ("path=a&name=none&version=1", "path=a&name=m{run}&version=9", "path=a"):
        both.compare("GET", f"/model-versions/get-artifact?{query}")


PROMPTLAB = f"{AJAX}runs/create-promptlab-run"
PROMPT = {
    "run_name": "tried",
    "prompt_template": "Say {{ a }} to\n{{ b c }}: yes",
    "prompt_parameters": [{"key": "a", "value": "hi: there"}, {"key": "b c", "value": 42}],
    "model_route": "no",
    "model_parameters": [
        {"key": "temperature", "value": 0.5},
        {"key": "stop", "value": ["x", "y"]},
        {"key": "true", "value": True},
        {"key": "nothing"},
    ],
    "model_input": "Say hi: there to\n42: yes",
    "model_output": "Grüße ☃ 😀 \x01",
    "model_output_parameters": [{"key": "tokens", "value": 12}],
    "mlflow_version": "2.7.1",
    "user_id": "u",
    "start_time": 1_700_000_000_000,
}


def _promptlab(side: Files, fields: dict[str, Any]) -> Any:
    """The run that a server makes of a prompt, and its files; without what differs from run to
    run, and the versions of pip and setuptools."""
    run = side.json("POST", PROMPTLAB, {"experiment_id": side.experiment, **fields})["run"]
    info = run["info"]
    started = info["start_time"] if "start_time" in fields else info.pop("start_time")
    assert info.pop("end_time") >= started
    root = urlsplit(info["artifact_uri"]).path.lstrip("/")
    results: dict[str, Any] = {}
    for folder in ("", "/model"):
        listed = side.json("GET", f"{PROXY}?path={root}{folder}").get("files", [])
        for path in [f"{folder}/{file['path']}" for file in listed if not file.get("is_dir")]:
            content = side.ask("GET", f"{PROXY}/{root}{path}").body.decode()
            is_yaml = path.endswith((".yaml", "MLmodel"))
            results[path] = yaml.safe_load(content) if is_yaml else content
    tags = {tag["key"]: tag["value"] for tag in run["data"]["tags"]}
    if "/model/MLmodel" in results:
        [model] = json.loads(tags.pop("mlflow.log-model.history"))
        for name in ("model_uuid", "utc_time_created"):
            assert results["/model/MLmodel"].pop(name) == model[name]
            model[name] = len(model[name])
        tags["model"] = json.dumps(model)
        for name, key in (("conda", "dependencies"), ("python_env", "build_dependencies")):
            listed = results[f"/model/{name}.yaml"][key]
            listed[:] = [
                re.sub("^(pip|setuptools)[<=].*", r"\1", str(dependency)) for dependency in listed
            ]
    if "run_name" not in fields:
        assert info.pop("run_name") == tags.pop("mlflow.runName")
    params = {param["key"]: param["value"] for param in run["data"].get("params", [])}
    dumped = json.dumps(
        [info, params, tags, run["inputs"], run["outputs"], results], sort_keys=True
    )
    shown = dumped.replace(info["run_id"], "…").replace(f"/{side.experiment}/", "/…/")
    return json.loads(shown.replace(f'"{side.experiment}"', '"…"'))


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"prompt_parameters": [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]},
        {"model_parameters": [{"key": "bad~key", "value": 1}]},
        {"model_parameters": [{"key": "model_route", "value": 1}]},
        {"prompt_template": "t" * 7000, "model_output": None, "model_input": {"a": [1.5]}},
    ],
)
def test_a_run_of_the_prompt_lab(both: Both, more: dict[str, Any]) -> None:
    stock, ours = (_promptlab(side, {**PROMPT, **more}) for side in both.sides)
    assert ours == stock
    names = ("prompt_template", "prompt_parameters", "model_route", "model_input", "mlflow_version")
    least = {name: PROMPT[name] for name in names} | more
    stock, ours = (_promptlab(side, least) for side in both.sides)
    assert ours == stock


def test_what_the_prompt_lab_must_send(both: Both) -> None:
    fields = {"experiment_id": "98765432", **PROMPT}
    for name, value in fields.items():
        rest = {key: fields[key] for key in fields if key != name}
        for sent in (rest, {**rest, name: type(value)()}):
            for body in (sent, {**sent, "model_input": []}):
                data = json.dumps(body).encode()
                answer = both.compare("POST", PROMPTLAB, data, Content_Type="application/json")
                assert 400 <= answer.status < 500
    both.compare("POST", PROMPTLAB, b"{}", Content_Type="text/plain")


@pytest.mark.parametrize("method", ["POST", "PATCH", "OPTIONS"])
def test_methods(both: Both, method: str) -> None:
    for path in (f"{PROXY}/a", PROXY, "/get-artifact"):
        answers = [side.ask(method, path) for side in both.sides]
        assert answers[0].status == answers[1].status
