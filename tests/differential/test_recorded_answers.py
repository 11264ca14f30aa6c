"""Recorded answers are compared, and read only where they answer what is asked."""

from __future__ import annotations

import http.client
import json
import lzma
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.differential import recorded_answers
from tests.differential.answering_server import answering, asking
from tests.differential.pair import pair
from tests.differential.recorded_answers import Answer, Answers, Compared, Refused, Request, Writer
from tests.differential.rest import post

pytest_plugins = ["pytester"]

FILE = Path("tests/differential/test_of_nothing.py")
ASKED = Request("POST", "/runs?a=1", (("Content-Length", "8"),), b'{"a": 1}')
OTHER = {
    "method": ASKED._replace(method="PUT"),
    "path": ASKED._replace(target="/experiments?a=1"),
    "query": ASKED._replace(target="/runs?a=2"),
    "body": ASKED._replace(body=b'{"a": 2}'),
    "login": ASKED._replace(headers=(*ASKED.headers, ("Authorization", "Basic x"))),
}


def served(value: object, status: int = 200) -> Answer:
    headers = [["content-type", "application/json"]]
    return Answer(status, "OK", headers, json.dumps(value).encode())


def recorded(*requests: Request) -> recorded_answers.Sections:
    writer = Writer(FILE, lambda request: served({"to": request.method}))
    for request in requests:
        writer.answer(request)
    return writer.sections


@pytest.fixture(autouse=True)
def outside_of_tests_that_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_answers, "_sections", [])


def test_requests_get_the_answers_that_were_recorded() -> None:
    answers = Answers(FILE, recorded(ASKED, OTHER["method"]))
    assert json.loads(answers.answer(ASKED).body) == {"to": "POST"}
    assert json.loads(answers.answer(OTHER["method"]).body) == {"to": "PUT"}
    answers.end()


def test_headers_of_a_connection_change_no_answer() -> None:
    answers = Answers(FILE, recorded(ASKED._replace(headers=(*ASKED.headers, ("Host", "a:1")))))
    assert answers.answer(ASKED._replace(headers=(("Host", "b:2"), *ASKED.headers))).status == 200


@pytest.mark.parametrize("changed", OTHER)
def test_a_changed_request_is_refused(changed: str) -> None:
    answers = Answers(FILE, recorded(ASKED))
    assert answers.answer(OTHER[changed]).status == 599
    with pytest.raises(
        Refused, match=r"another than recorded.*make record-answers FILES=test_of_n"
    ):
        answers.end()


def test_nothing_is_answered_after_a_refusal() -> None:
    answers = Answers(FILE, recorded(ASKED, ASKED))
    answers.answer(OTHER["body"])
    assert answers.answer(ASKED).status == 599


def test_an_additional_request_is_refused() -> None:
    answers = Answers(FILE, recorded(ASKED))
    answers.answer(ASKED)
    assert answers.answer(ASKED).status == 599
    with pytest.raises(
        Refused, match=r"has 1 requests of no test, but not POST /runs.*make record"
    ):
        answers.end()


def test_a_request_that_is_not_sent_is_missed() -> None:
    answers = Answers(FILE, recorded(ASKED, ASKED))
    answers.answer(ASKED)
    with pytest.raises(Refused, match=r"1 more requests.*make record-answers"):
        answers.end()


def test_a_file_without_a_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"not recorded: run make record-answers FILES=test_a.py"):
        recorded_answers.read(tmp_path / "test_a.py")


def test_answers_of_another_mlflow_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "test_a.py"
    recorded_answers.write(file, recorded(ASKED))
    assert recorded_answers.read(file) == recorded(ASKED)
    path = recorded_answers.path_of(file)
    content = json.loads(lzma.decompress(path.read_bytes()))
    content["mlflow"] = "3.1.0"
    path.write_bytes(lzma.compress(json.dumps(content).encode()))
    with pytest.raises(Refused, match=r"those of MLflow 3\.1\.0.*make record-answers"):
        recorded_answers.read(file)


@pytest.mark.parametrize(
    ("ours", "difference"),
    [
        (served({"experiment_id": "7", "tags": []}), ""),  # an id, which a server chooses
        (served({"experiment_id": "7", "tags": ["x"]}), "tags"),
        (served({"experiment_id": "7"}), "tags"),
        (served({"error_code": "INTERNAL_ERROR"}, 400), "stock 200"),
    ],
)
def test_what_ours_answers_is_compared_with_the_recording(ours: Answer, difference: str) -> None:
    call = post("experiments/create", {"name": "n"})
    stock = served({"experiment_id": "1", "tags": []})
    writer = Writer(FILE, lambda _request: stock)
    with (
        answering(writer.answer) as recording,
        answering(lambda _request: stock) as product,
        pair(recording, product) as both,
    ):
        both.send(call)
    answers = Answers(FILE, writer.sections)
    with (
        answering(answers.answer) as recording,
        answering(lambda _request: ours) as product,
        pair(recording, product) as both,
    ):
        if difference:
            with pytest.raises(AssertionError, match=difference):
                both.send(call)
        else:
            both.send(call)
    answers.end()


IDS = ("0a" * 16, "1b" * 16)


@pytest.mark.parametrize(
    ("later", "is_same"),
    [
        ({"run_id": IDS[1], "end_time": 1_800_000_000_001, "tags": ["b", "a"]}, True),
        ({"run_id": IDS[1], "end_time": 1_800_000_000_001, "tags": ["a", "c"]}, False),
        ({"run_id": IDS[1], "end_time": None, "tags": ["a", "b"]}, False),
        ({"run_id": IDS[1], "tags": ["a", "b"]}, False),
    ],
)
def test_a_server_that_answers_otherwise_is_noticed(later: object, is_same: bool) -> None:
    """What it chooses anew each time may differ."""
    first = {"run_id": IDS[0], "end_time": 1_700_000_000_000, "tags": ["a", "b"]}
    writer = Writer(FILE, lambda _request: served(first))
    writer.answer(ASKED)
    with answering(lambda _request: served(later)) as url:
        compared = Compared(FILE, writer.sections, asking(url))
        assert json.loads(compared.answer(ASKED).body) == later
    if is_same:
        compared.end()
    else:
        with pytest.raises(Refused, match=r"MLflow answers .*, and the recording has"):
            compared.end()


def test_sets_in_texts_have_no_order() -> None:
    shapes = [
        recorded_answers.shape(served({"message": f"lacks {{{names}}}"}))
        for names in ("'a', 'b'", "'b', 'a'", "'a', 'c'")
    ]
    assert shapes[0] == shapes[1] != shapes[2]


def test_objects_of_another_process_are_the_same() -> None:
    """They have another address, and their fields may have another order."""
    shapes = [
        recorded_answers.shape(served(answer))
        for answer in (
            {"message": "<function is_ at 0x7f9030ed6340>"},
            {"message": "<function is_ at 0x7f9cbac9e520>"},
            {"message": "<function eq at 0x7f9cbac9e520>"},
            {"points": [{"name": "a", "state": "OK"}, {"name": "b", "state": "ERROR"}]},
            {"points": [{"state": "ERROR", "name": "b"}, {"state": "OK", "name": "a"}]},
            {"points": [{"state": "OK", "name": "b"}, {"state": "ERROR", "name": "a"}]},
        )
    ]
    assert shapes[0] == shapes[1] != shapes[2]
    assert shapes[3] == shapes[4] != shapes[5]


def test_a_live_answer_arrives_as_it_was_sent() -> None:
    sent = Answer(404, "Missing", [["content-type", "text/x"], ["x-a", "b"]], b"\x00\xff")
    seen: list[Request] = []

    def far(request: Request) -> Answer:
        seen.append(request)
        return sent

    with answering(far) as url:
        assert asking(url)(ASKED) == sent
        assert seen[0][:2] == ASKED[:2]
        assert seen[0].body == ASKED.body
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
        for _ in range(2):  # on one connection
            connection.request("GET", "/x")
            assert connection.getresponse().read() == sent.body
        connection.close()


CONFTEST = "from tests.differential.conftest import *\n"
TESTS = """
import http.client
from types import SimpleNamespace
from uuid import uuid4

import pytest

from tests.differential.answering_server import answering
from tests.differential.recorded_answers import Answer
from tests.differential.servers import stock_or_recording


def start(folder):
    served = answering(lambda request: Answer(200, "OK", [], request.body.upper()))
    return SimpleNamespace(url=served.__enter__(), stop=lambda: served.__exit__(None, None, None))


@pytest.fixture(scope="module")
def stock(request):
    with stock_or_recording(request, start) as url:
        yield url.removeprefix("http://")


def ask(stock, body):
    connection = http.client.HTTPConnection(stock)
    connection.request("POST", "/", body)
    answer = connection.getresponse().read()
    connection.close()
    return answer


@pytest.fixture(scope="module")
def made(stock):
    name = uuid4().hex
    return name, ask(stock, name)


def test_one(stock, made):
    assert made[1] == made[0].upper().encode()
    assert ask(stock, uuid4().hex) != made[1]


def test_two(stock, made):
    assert ask(stock, made[0]) == made[1]
"""


def test_files_of_tests_are_recorded_read_and_refused(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]")  # the root, beyond which nothing is collected
    pytester.makeconftest(CONFTEST)

    def run(mode: str, name: str = "", text: str = TESTS) -> str:
        monkeypatch.setenv("STOCK_ANSWERS", mode)
        file = pytester.makepyfile(test_asks=text)
        ran = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", f"{file}{name}")
        return ran.stdout.str()

    assert "not recorded: run make record-answers FILES=test_asks.py" in run("recorded")
    failing = TESTS.replace("== made[1]", "is None")
    assert "1 failed, 1 passed" in run("write", text=failing)
    assert not list(pytester.path.rglob("*.xz")), "a failing comparison was recorded"
    assert "whole files" in run("write", "::test_two")
    assert not list(pytester.path.rglob("*.xz")), "a part of a file was recorded"
    assert "2 passed" in run("write")
    assert "2 passed" in run("recorded")
    assert "1 passed" in run("recorded", "::test_two")  # alone, with the shared fixture
    assert "2 passed" in run("compared")
    longer = run("recorded", text=TESTS + "    ask(stock, b'x')\n")
    assert "1 failed, 1 passed" in longer
    assert "has 1 requests of test_two, but not POST /. If that is meant, run make" in longer
    other = TESTS.replace('"POST"', '"PUT"')
    assert "the request PUT / is another than recorded" in run("recorded", text=other)
    louder = TESTS.replace("request.body.upper()", "request.body.upper() + b'!'").replace(
        "== made[0].upper().encode()", "!= b''"
    )
    assert "and the recording has" in run("compared", text=louder)
