"""Files of batches that are uploaded through the gateway's proxy: their lines may name the
endpoint's model only, in whatever spelling they name another one."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from mlcore.errors import GatewayCallFailed
from mlcore.gateway import batch_files
from mlcore.providers.proxied import ProxiedRequest
from tests.contract.conftest import Store
from tests.contract.gateway_world import allow_local, endpoint, model
from tests.contract.raw_provider import answers
from tests.contract.raw_requests import Answer, send
from tests.contract.sealing import seal_here
from tests.doubles.providers import Provider, serving

OWN, DEAR = "gpt-4o-mini", "o1-pro"
BOUNDARY = "b0undary"


@pytest.fixture
def provider(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    with serving(answers) as running:
        endpoint("chat", [model("m", "openai", f"{running.url}/v1", model_name=OWN)])
        yield running


def line(name: Any, **more: Any) -> str:
    body = {"model": name, "messages": [{"role": "user", "content": "Grüezi"}]}
    request = {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": body}
    return json.dumps({**request, **more})


def form_of(content: bytes, purpose: str | None = "batch") -> bytes:
    parts = [(b'name="file"; filename="a.jsonl"', content)]
    if purpose is not None:
        parts.append((b'name="purpose"', purpose.encode()))
    written = (
        b"--%b\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n"
        % (BOUNDARY.encode(), disposition, value)
        for disposition, value in parts
    )
    return b"".join((*written, b"--%b--\r\n" % BOUNDARY.encode()))


def upload(
    content: str | bytes, purpose: str | None = "batch", path: str = "chat/v1/files"
) -> Answer:
    data = content if isinstance(content, bytes) else content.encode()
    kind = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
    return send("POST", path, form_of(data, purpose), headers=kind)


GOOD = {
    "one": line(OWN),
    "lines": f"{line(OWN)}\n\r\n{line(OWN)}\r\n",
    "with a mark": "\ufeff" + line(OWN),
    "no model": '{"custom_id": "1", "body": {"input": "the model o1-pro"}}',
    "said, not named": line(OWN, note={"model": DEAR}, metadata={"body": "model: o1-pro"}),
    "a line separator in a text": line(OWN, note="a\u2028b"),
}

BAD: dict[str, str | bytes] = {
    "another": line(DEAR),
    "the last of many": f"{line(OWN)}\n" * 500 + line(DEAR),
    "a longer name": line(f"{OWN}-2024-07-18"),
    "upper case": line(OWN.upper()),
    "null": line(None),
    "a list": line([OWN, DEAR]),
    "an object": line({"name": OWN}),
    "the first of two": f'{{"body": {{"model": "{DEAR}", "model": "{OWN}"}}}}',
    "the last of two": f'{{"body": {{"model": "{OWN}", "model": "{DEAR}"}}}}',
    "the first of two bodies": f'{{"body": {{"model": "{DEAR}"}}, "body": {{"model": "{OWN}"}}}}',
    "escapes": f'{{"b\\u006fdy": {{"\\u006dodel": "{DEAR}"}}}}',
    "other letters": f'{{"Body": {{"MODEL": "{DEAR}"}}}}',
    "a space": f'{{"body": {{"model ": "{DEAR}"}}}}',
    "two values in a line": line(OWN) + line(DEAR),
    "returns end lines": line(OWN) + "\r" + line(DEAR),
    "a list of requests": f"[{line(OWN)}, {line(DEAR)}]",
    "parameters": f'{{"custom_id": "1", "params": {{"model": "{DEAR}"}}}}',
    "Gemini's": f'{{"key": "1", "request": {{"model": "models/{DEAR}"}}}}',
    "returns within": line(DEAR).replace(", ", ",\r"),
    "UTF-16": line(DEAR).encode("utf-16"),
    "UTF-16 without a mark": line(DEAR).encode("utf-16-le"),
    "UTF-32": line(DEAR).encode("utf-32"),
    "a mark": "\ufeff" + line(DEAR),
    "a long number": line(DEAR).replace('"1"', "1" * 5_000),
    "a control character": line(DEAR).replace('"1"', '"a\tb"'),
    "a long s": f'{{"reque\u017ft": {{"model": "{DEAR}"}}}}',
    "a container": f'{{"batch": {{"inputConfig": {{"requests": [{line(DEAR)}]}}}}}}',
}


@pytest.mark.parametrize("case", GOOD)
def test_the_endpoints_own_model(provider: Provider, case: str) -> None:
    assert upload(GOOD[case]).status == 200
    assert provider.asked[-1].raw == form_of(GOOD[case].encode())


@pytest.mark.parametrize("case", BAD)
def test_another_model_is_refused(provider: Provider, case: str) -> None:
    """For whatever purpose the file says it is, and also as a body without a form."""
    content = BAD[case]
    for purpose in ("batch", "user_data", "Batch-API", None):
        answer = upload(content, purpose)
        assert answer.status == 403, answer.body
        assert "not the endpoint's" in answer.json["detail"]
    data = content if isinstance(content, bytes) else content.encode()
    raw = {"content-type": "application/octet-stream"}
    assert send("POST", "chat/v1/files", data, headers=raw).status == 403
    assert provider.asked == []


def test_what_cannot_be_read(provider: Provider) -> None:
    """A file of a batch is JSON; other files may be anything."""
    garbage = "x\u2028" + line(DEAR)
    assert upload(garbage).status == 400
    assert upload(garbage, None).status == 400, "another reader ends a line there"
    assert upload(garbage, "user_data").status == 200, "a text about models"
    deep = '{"body": {"model": ' + "[" * 100_000
    assert upload(deep, "user_data").status == 400
    for content in (b"%PDF-1.7 \xff\xfe model", bytes(range(256)) * 40, b"a model, not JSON"):
        assert upload(content, "user_data").status == 200
        assert upload(content).status == 400
    count = len(provider.asked)
    parts = json.dumps({"purpose": "batch", "filename": "a.jsonl", "bytes": 9}).encode()
    json_type = {"content-type": "application/json"}
    assert send("POST", "chat/v1/uploads", parts, headers=json_type).status == 400
    assert upload(line(DEAR), None, "chat/v1/uploads/u1/parts").status == 403
    assert len(provider.asked) == count
    other = parts.replace(b"batch", b"vision")
    assert send("POST", "chat/v1/uploads", other, headers=json_type).status == 200
    assert upload(line(DEAR), None, "chat/v1/audio/transcriptions").status == 200


LENIENT = [
    "{'request': {'model': 'models/o1-pro'}}",
    '{"request": {"model": "models/o1-pro"},}',
    '{request: {model: "models/o1-pro"}}',
    '{"request": {"model"/* a */: "models/o1-pro"}}',
    '{"request": {"\\x6dodel": "models/o1-pro"}}',
    '\x00{"request": {"model": "models/o1-pro"}}',
    '{\n"request": {"model"\n: "models/o1-pro",}}',
    "x = {'Mo_del': 'models/o1-pro'}",
]


@pytest.mark.parametrize("content", LENIENT)
def test_what_another_parser_may_read(provider: Provider, content: str) -> None:
    """It is refused if it names a model, but not in a file for another purpose, of which the
    provider makes no batch."""
    raw = {"content-type": "application/octet-stream"}
    for purpose in ("batch", None):
        assert upload(content, purpose).status == 400
    assert send("POST", "chat/v1/files", content.encode(), headers=raw).status == 400
    assert provider.asked == []
    assert upload(content, "user_data").status == 200


def test_an_encoding_is_not_guessed(provider: Provider) -> None:
    """The first bytes look like UTF-16, but a reader of UTF-8 reads the second line."""
    content = b"a\x00\n" + line(DEAR).encode()
    assert upload(content, "user_data").status == 403
    assert upload(content).status == 400
    assert provider.asked == []


def test_documents(provider: Provider) -> None:
    """JSON of several lines that is no batch, and prose."""
    for content in (
        json.dumps({"name": "x", "model": DEAR}, indent=2),
        "[Model card](https://example.com) of the model: o1-pro",
        "The 'model' and the \"Model\", and more",
    ):
        assert upload(content, None).status == 200
    batch = json.dumps({"request": {"model": DEAR}}, indent=2)
    assert upload(batch, None).status == 403


@pytest.mark.parametrize("depth", [100, 400, 100_000])
def test_deep_lists(provider: Provider, depth: int) -> None:
    content = '{"requests":[' * depth + line(DEAR) + "]}" * depth
    assert upload(content, "user_data").status in (400, 403)
    assert provider.asked == []


def test_no_depth_exceeds_the_stack() -> None:
    """Also not of a value that a decoder with another limit has read."""
    value: Any = {"body": {"model": DEAR}}
    for _ in range(20_000):
        value = {"requests": [value]}
    assert batch_files.names_other(value, {OWN})
    while value := value.get("requests", [None])[0]:  # freed level by level
        pass


def test_uploads_in_parts(provider: Provider) -> None:
    """Google's protocol of resumable uploads: a name could be cut between two parts."""
    content = line(OWN).encode()

    def part(**headers: str) -> int:
        named = {f"x-goog-upload-{name}": value for name, value in headers.items()}
        kind = {"content-type": "application/octet-stream"}
        return send("POST", "chat/upload/v1beta/files", content, headers=kind | named).status

    assert part(command="upload, finalize", offset="0") == 200
    assert part(command="start", protocol="resumable") == 200
    assert part(protocol="raw") == 200
    count = len(provider.asked)
    assert part(command="upload", offset="0") == 400
    assert part(command="Upload, Finalize", offset="9") == 400
    assert part(command="finalize") == 400
    ranged = {"content-type": "application/octet-stream", "content-range": "bytes 0-9/20"}
    assert send("POST", "chat/upload/v1beta/files", content, headers=ranged).status == 400
    assert len(provider.asked) == count


def test_a_file_of_one_line(provider: Provider) -> None:
    """It is a body of JSON."""
    json_type = {"content-type": "application/json"}
    for name, status in ((OWN, 200), (DEAR, 403)):
        sent = json.dumps({"key": "1", "request": {"model": f"models/{name}"}}).encode()
        answer = send("POST", "chat/upload/v1beta/files", sent, headers=json_type)
        assert answer.status == status
    assert len(provider.asked) == 1


def test_geminis_batches(provider: Provider) -> None:
    """Their requests name models, too, beside the path."""
    json_type = {"content-type": "application/json"}
    for name, status in ((OWN, 200), (DEAR, 403)):
        requests = {"requests": [{"request": {"model": f"models/{name}"}}]}
        sent = json.dumps({"batch": {"input_config": {"requests": requests}}}).encode()
        for end in ("batchGenerateContent", "asyncBatchEmbedContent", "batchGenerateContent/"):
            path = f"chat/v1beta/models/{OWN}:{end}"
            assert send("POST", path, sent, headers=json_type).status == status
    assert len(provider.asked) == 3


def test_batches_that_carry_their_requests(provider: Provider) -> None:
    """Their results are read later, too. What is answered at once may name other models: the
    dearest is charged."""
    json_type = {"content-type": "application/json"}

    def begin(path: str, *names: str, **more: Any) -> int:
        requests = [{"custom_id": "1", "params": {"model": name}} for name in names]
        sent = json.dumps({"requests": requests, **more}).encode()
        return send("POST", f"chat/{path}", sent, headers=json_type).status

    generate = "v1beta/models/{}:batchGenerateContent"
    assert begin("v1/messages/batches", OWN, OWN) == 200
    assert begin("v1/batch/jobs", model=OWN) == 200
    assert begin(generate.format(OWN)) == 200
    assert begin("v1beta/models/other:batchEmbedContents") == 200
    assert begin("v1/responses", model=DEAR) == 200
    count = len(provider.asked)
    for path in ("v1/messages/batches", "v1/Messages/Batches/", "v1//messages/batches;x=1"):
        assert begin(path, OWN, DEAR) == 403
    assert begin("v1/batch/jobs", model=DEAR) == 403
    assert begin("v1/batches", model=DEAR) == 403
    assert begin(generate.format(DEAR)) == 403
    text = b'{"requests": [{"params": {"model": "%b", "model": "%b"}}]}'
    raw = text % (DEAR.encode(), OWN.encode())
    octets = {"content-type": "application/octet-stream"}
    assert send("POST", "chat/v1/messages/batches", raw, headers=octets).status == 403
    assert len(provider.asked) == count


def test_a_large_file_is_read_line_by_line() -> None:
    content = f"{line(OWN)}\n".encode() * 5_000 + line(DEAR).encode()
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    request = ProxiedRequest("v1/files", content=form_of(content), content_type=kind)
    tracemalloc.start()
    try:
        with pytest.raises(GatewayCallFailed, match="Line 5001 ") as refused:
            batch_files.check(request, frozenset({OWN}), {})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refused.value.status == 403
    assert peak < 3.2 * len(content), "the parts of the form, and one line"
