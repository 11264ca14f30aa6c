"""What stock MLflow answered to the requests of each test, in files; owns when it may be read.

``STOCK_ANSWERS`` chooses: ``recorded`` answers (the default), the ``live`` server's, the live
server's ``compared`` with the recorded ones, or ``write`` to record them. A file of tests has one
recording. In it each test has its requests in their order, and so has each fixture that tests
share. A request is read from there only where it is, byte for byte, the one that was recorded; so
tests must choose the same names and ids in each run: :func:`sending` sees to what uuid4 makes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import lzma
import os
import random
import re
import uuid
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, Final, NamedTuple

MODES: Final = ("recorded", "live", "compared", "write")
COMMAND: Final = "make record-answers FILES={file}"
LIVE: Final = {
    "test_artifacts": "it is about files and redirects to the server's own address",
    "test_auth_routes": "it asks all routes, also those that a change of the product adds",
    "test_client_operations": "MLflow's client sends in another process: recorded_outcomes.py",
    "test_graphql": "its experiment has a name that is chosen when the file is imported",
    "test_http": "it is about the bytes of HTTP itself",
    "test_issue_detection": "MLflow's own code sends in another process: recorded_outcomes.py",
    "test_rest_gateway": "it deletes what a test made after the test, where a recording ends",
    "test_rest_gateway_rules": "as test_rest_gateway",
    "test_rest_judges": "when a schedule is due next depends on the clock",
    "test_rest_registry": "its versions 1 would be taken for the first experiment of a new server",
    "test_rest_trace_costs": "MLflow's client logs traces from another process",
    "test_rest_traces": "compressed requests hold the time",
    "test_rest_webhooks": "as test_rest_gateway",
    "test_trace_archival": "it is about files, and about when they are written",
    "test_webhook_deliveries": "it is about what the server sends, and when",
}
"""Files that always ask the live server, and why."""
_UNSENT: Final = frozenset({"host", "user-agent", "accept-encoding", "connection"})
"""Headers of a request that change nothing in the answer."""


class Request(NamedTuple):
    method: str
    target: str
    """Path and query, as in the request's first line."""
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def __str__(self) -> str:
        return f"{self.method} {self.target}"[:200]

    @property
    def digest(self) -> str:
        sent = sorted((n.lower(), v) for n, v in self.headers if n.lower() not in _UNSENT)
        head = json.dumps([self.method, self.target, sent]).encode()
        return hashlib.sha256(head + b"\n" + self.body).hexdigest()[:20]


class Answer(NamedTuple):
    status: int
    reason: str
    headers: list[list[str]]
    body: bytes


class Exchange(NamedTuple):
    """``request`` is the beginning of its first line, for people; the digest is of all of it."""

    request: str
    digest: str
    answer: Answer


Sections = dict[str, list[Exchange]]
"""The exchanges of each test and of each shared fixture of a file, by its name."""


class Refused(AssertionError):
    """What a test asked has no answer in the recording, or the server now answers otherwise."""


def mode() -> str:
    """One of MODES. With servers that run already all is live: they know names of earlier runs."""
    chosen = os.environ.get("STOCK_ANSWERS", "recorded")
    if chosen not in MODES:
        raise ValueError(f"STOCK_ANSWERS is one of {', '.join(MODES)}, not {chosen!r}")
    running = {"DIFFERENTIAL_STOCK_URL", "DIFFERENTIAL_PRODUCT_URL"} & os.environ.keys()
    return "live" if running else chosen


def is_live(file: Path) -> bool:
    return mode() == "live" or file.stem in LIVE


def path_of(file: Path) -> Path:
    return file.parent / "recorded" / f"{file.stem}.json.xz"


def save(file: Path, recorded: dict[str, Any]) -> None:
    """Writes the recording of a file of tests, with the version of the installed MLflow."""
    recording = {"mlflow": metadata.version("mlflow"), **recorded}
    path_of(file).parent.mkdir(exist_ok=True)
    content = json.dumps(recording, ensure_ascii=False).encode()
    path_of(file).write_bytes(lzma.compress(content, preset=9))


def load(file: Path) -> dict[str, Any]:
    """Reads the recording of a file of tests. Raises Refused where there is none, or one of another
    MLflow."""
    command = COMMAND.format(file=file.name)
    if not path_of(file).exists():
        raise Refused(f"stock MLflow's answers to {file.name} are not recorded: run {command}")
    content: dict[str, Any] = json.loads(lzma.decompress(path_of(file).read_bytes()))
    installed = metadata.version("mlflow")
    if content["mlflow"] != installed:
        raise Refused(
            f"the answers to {file.name} are those of MLflow {content['mlflow']}, and {installed} "
            f"is installed: run {command}"
        )
    return content


def write(file: Path, sections: Sections) -> None:
    """Makes the recording of a file of tests, by the installed MLflow."""
    rows = {
        name: [
            [each.request, each.digest, *each.answer[:3], each.answer.body.decode("latin-1")]
            for each in exchanges
        ]
        for name, exchanges in sections.items()
    }
    save(file, {"sections": rows})


def read(file: Path) -> Sections:
    """Raises Refused where there is no recording, or one of another MLflow."""
    return {
        name: [
            Exchange(request, digest, Answer(status, reason, headers, body.encode("latin-1")))
            for request, digest, status, reason, headers, body in rows
        ]
        for name, rows in load(file)["sections"].items()
    }


class Answers:
    """Answers the requests of a file of tests from its recording."""

    def __init__(self, file: Path, sections: Sections) -> None:
        self.file, self.sections = file, sections
        self.refusals: dict[str, str] = {}
        """Why a section got no answer, or not this one: the first reason of each."""
        self._read: dict[str, int] = {}

    def answer(self, request: Request) -> Answer:
        expected = self.expected(request)
        if expected and expected.digest != request.digest:
            self.refuse(f"the request {request} is another than recorded: {expected.request}")
        refusal = self.refusals.get(now())
        if refusal or not expected:
            return Answer(599, "Not recorded", [], str(refusal).encode())
        return expected.answer

    def expected(self, request: Request) -> Exchange | None:
        """What the recording has next, or nothing and a refusal."""
        section = now()
        exchanges = self.sections.get(section, [])
        number = self._read.get(section, 0)
        self._read[section] = number + 1
        if number < len(exchanges):
            return exchanges[number]
        self.refuse(f"the recording has {len(exchanges)} requests of {section}, but not {request}")
        return None

    def refuse(self, why: str) -> None:
        command = COMMAND.format(file=self.file.name)
        self.refusals.setdefault(
            now(),
            f"{why}. If that is meant, run {command}; STOCK_ANSWERS=live asks the server itself",
        )

    def begin(self, section: str) -> None:
        self.refusals.pop(section, None)
        self._read[section] = 0

    def end(self) -> None:
        """Raises Refused where what sends now was refused, or sent less than is recorded."""
        left = len(self.sections.get(now(), ())) - self._read.get(now(), 0)
        if left > 0:
            self.refuse(f"the recording has {left} more requests of {now()}")
        self.raise_refusal()

    def raise_refusal(self, cause: Exception | None = None) -> None:
        if now() in self.refusals:
            raise Refused(self.refusals[now()]) from cause


class Compared(Answers):
    """Asks the live server, and compares what it answers with the recording."""

    def __init__(self, file: Path, sections: Sections, ask: Callable[[Request], Answer]) -> None:
        super().__init__(file, sections)
        self._ask = ask

    def answer(self, request: Request) -> Answer:
        answer = self._ask(request)
        expected = self.expected(request)
        if expected and shape(expected.answer) != shape(answer):
            self.refuse(
                f"{request}: MLflow answers {shape(answer)!s:.2000}, and the recording has "
                f"{shape(expected.answer)!s:.2000}"
            )
        return answer


class Writer(Answers):
    """Asks the live server, and keeps what it answers."""

    def __init__(self, file: Path, ask: Callable[[Request], Answer]) -> None:
        super().__init__(file, {})
        self._ask = ask

    def answer(self, request: Request) -> Answer:
        answer = self._ask(request)
        exchange = Exchange(str(request), request.digest, answer)
        self.sections.setdefault(now(), []).append(exchange)
        return answer

    def begin(self, section: str) -> None:
        self.sections.pop(section, None)

    def end(self) -> None:
        """Whatever was sent is the recording."""


_GENERATED: Final = re.compile(
    r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b1[6-9]\d{11}\b"
    r"|\b20\d\d-\d\d-\d\d[T ][\d:.]+|\b[a-z]+-[a-z]+-\d{1,4}\b|\bat 0x[0-9a-f]+(?=>)"
)
"""Ids, times and names that a server chooses, and the addresses of its objects."""
_SET: Final = re.compile(r"\{('[^{}]*)\}")
"""A set as Python prints it, whose order differs from process to process."""
_CHOSEN: Final = frozenset({"next_page_token", "digest"})
"""Fields that are made of such ids and times."""


def shape(answer: Answer) -> tuple[int, str, Any]:
    """Status, type and body without what the server chooses anew each time; lists, which it may
    order by that, in one order."""
    kind = next((value for name, value in answer.headers if name == "content-type"), "")
    text = answer.body.decode("utf-8", "replace")
    try:
        return answer.status, kind, _plain(json.loads(text))
    except ValueError:
        return answer.status, kind, _plain(text)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            _plain(key): "*" if key in _CHOSEN and inner else _plain(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return sorted((_plain(inner) for inner in value), key=_in_text)
    if isinstance(value, str):
        return _GENERATED.sub("*", _SET.sub(_in_order, value))
    if isinstance(value, int) and value > 1_600_000_000_000:
        return "*"
    return value


def _in_text(value: Any) -> str:
    """The same for the same objects, whose fields have no order."""
    return json.dumps(value, sort_keys=True)


def _in_order(match: re.Match[str]) -> str:
    return ", ".join(sorted(match[1].split(", ")))


_sections: list[str] = []
_open: list[Answers] = []


def now() -> str:
    """The test or the shared fixture whose requests these are."""
    return _sections[-1] if _sections else "no test"


@contextlib.contextmanager
def opened(answers: Answers) -> Iterator[None]:
    _open.append(answers)
    try:
        yield
    finally:
        _open.remove(answers)


@contextlib.contextmanager
def sending(file: Path, section: str) -> Iterator[None]:
    """What is sent in this block belongs to a test or a shared fixture, and uuid4 makes the same
    ids in each run of it."""
    for answers in _open:
        answers.begin(section)
    _sections.append(section)
    try:
        with _same_ids(f"{file.stem} {section}"):
            yield
    finally:
        _sections.pop()


@contextlib.contextmanager
def refusals_first() -> Iterator[None]:
    """A refusal takes the place of the failure that came of it."""
    try:
        yield
    except Exception as failure:
        for answers in _open:
            answers.raise_refusal(failure)
        raise


def all_sent() -> None:
    """Raises Refused where what sends now has asked other than is recorded."""
    for answers in _open:
        answers.end()


class _Os:
    """The module os, as uuid sees it, with the bytes of a seeded generator."""

    def __init__(self, seed: str) -> None:
        self.urandom = random.Random(seed).randbytes

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


@contextlib.contextmanager
def _same_ids(seed: str) -> Iterator[None]:
    outer = vars(uuid)["os"]
    vars(uuid)["os"] = _Os(seed)
    try:
        yield
    finally:
        vars(uuid)["os"] = outer
