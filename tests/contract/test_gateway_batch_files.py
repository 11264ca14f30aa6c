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
    assert upload(garbage, "user_data").status == 403, "another reader ends a line there"
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
            batch_files.check(request, frozenset({OWN}))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refused.value.status == 403
    assert peak < 3.2 * len(content), "the parts of the form, and one line"
