"""One workspace as its callers see it: sends their calls, knows what no answer may hold."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.client
import json
import re
from base64 import b64encode
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.e2e.numbering import FIRST, NOBODYS
from tests.e2e.workspace_calls import Call
from tests.e2e.workspace_registries import KINDS

_TOKEN = re.compile(r"⟦(\w)\.(\w+)\.(\d+)⟧")
_QUOTED = re.compile("%E2%9F%A6(.*?)%E2%9F%A7")
_TIME = re.compile(r"\b(1[6-9]\d{11}|1[78]\d{8}|20\d\d-\d\d-\d\d[T ][\d:.]+Z?)\b")
"""Milliseconds, seconds (until 2030; no number that FIRST begins) and ISO 8601."""
_GENERATED_NAME = re.compile(r'"[a-z]+-[a-z]+-\d{1,4}"')
_SIGNED = re.compile(r"(?<=/artifact-storage/)[^\s\"]*")
_ID = re.compile(
    r"\b(?:[a-z]{1,3}-)?[0-9a-f]{32}\b|\b[0-9A-HJKMNP-TV-Z]{26}\b|"
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|"
    r'(?<="digest":")[0-9a-f]{8}(?=")'
)
"""What is left of those that no call has named."""
_NUMBER = re.compile(r"(?<=id=)\d+|(?<=id )\d+|(?<=__user_)\d+")
_CONTEXT = re.compile(rf"\b{str(FIRST)[:2]}\d{{{len(str(FIRST)) - 2}}}\b")
"""Kubeflow's numbers of contexts, which come from one counter for all workspaces."""
_NUMBERS = ("role_id", "id", "user_id", "role_permission_id")


class Answer(NamedTuple):
    status: int
    text: str
    """With the header that redirects."""

    @property
    def body(self) -> Any:
        return json.loads(self.text)


class View:
    """A workspace behind a server.

    Args:
        owner: the workspace of whom the calls say that it is their own.
        name: of the workspace on the server.
    """

    def __init__(
        self, url: str, owner: str, name: str, others: str, login: tuple[str, str] | None = None
    ) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
        self.owner, self.name = owner, name
        self._login = login
        self.values = {f"{owner}.workspace.1": name, f"{owner}.user.1": login[0] if login else "u"}
        self.values[f"{'b' if owner == 'a' else 'a'}.workspace.1"] = others
        self.told: set[str] = set()
        """What callers have said themselves."""

    def close(self) -> None:
        self._connection.close()

    def value(self, whose: str, kind: str, number: str) -> str:
        """What a token stands for; what this workspace has never heard of is something that nobody
        has."""
        label = f"{whose}.{kind}.{number}"
        if label not in self.values:
            digest = hashlib.md5(f"{self.name} {label}".encode()).hexdigest()
            made = {
                "trace": f"tr-{digest}",
                "model": f"m-{digest}",
                "experiment": str(NOBODYS + int(digest[:5], 16)),
            }
            made |= dict.fromkeys(KINDS.values(), made["experiment"])
            if kind in ("role_id", "permission"):
                made[kind] = str(10**9 + int(digest[:5], 16))
            if kind == "hex":
                return self.value(whose, "trace", number)[3:]
            self.values[label] = made.get(kind, digest)
        return self.values[label]

    def _resolved(self, text: str) -> str:
        text = re.sub(r'"⟦(\w)\.(role_id|permission)\.(\d+)⟧"', r"⟦\1.\2.\3⟧", text)

        def put(match: re.Match[str]) -> str:
            value = self.value(*match.groups())
            self.told.add(value)
            return value

        return _TOKEN.sub(put, text)

    def send(self, call: Call) -> Answer:
        # A token in a query is quoted; ids need no quotes.
        query = self._resolved(_QUOTED.sub(r"⟦\1⟧", call.query))
        path = quote(self._resolved(call.path), safe="/")
        headers = {"x-mlflow-workspace": self.name, "content-type": "application/json"}
        headers |= {name: self._resolved(value) for name, value in call.headers.items()}
        if self._login:
            headers["authorization"] = "Basic " + b64encode(":".join(self._login).encode()).decode()
        body = None if call.body is None else self._resolved(call.body).encode()
        self._connection.request(
            call.method, f"{path}?{query}" if query else path, body=body, headers=headers
        )
        response = self._connection.getresponse()
        data = response.read()
        if response.getheader("content-encoding") == "gzip":
            data = gzip.decompress(data)
        return Answer(
            response.status,
            data.decode("utf-8", "replace") + (response.getheader("location") or ""),
        )

    def learn(self, call: Call, answer: Answer, number: int) -> None:
        """Keeps the id of what a call has made."""
        assert call.makes is not None
        kind, where = call.makes
        value = answer.body
        for part in where.split("."):
            value = value[part]
        self.values[f"{self.owner}.{kind}.{number}"] = str(value)

    def meet(self, other: View) -> None:
        """Knows from here on what the other workspace has."""
        of_other = f"{other.owner}."
        self.values |= {k: v for k, v in other.values.items() if k.startswith(of_other)}

    def mine(self) -> set[str]:
        """The ids that nobody else may see."""
        return {
            value
            for label, value in self.values.items()
            if label.startswith(f"{self.owner}.") and _is_telling(label, value)
        }

    def comparable(self, answer: Answer) -> str:
        """The answer without what may differ between two workspaces in the same state."""
        labels = {
            value: f"⟦{label}⟧" for label, value in self.values.items() if _tells(label, value)
        }
        for value, label in list(labels.items()):
            if value.startswith("tr-"):
                labels |= {value[3:]: label, b64encode(bytes.fromhex(value[3:])).decode(): label}
        labels[self.name] = "⟦workspace⟧"
        # A pattern of all values would take longer to compile than the call that it is for.
        present = sorted((value for value in labels if value in answer.text), key=len, reverse=True)
        text = answer.text
        if present:
            pattern = "|".join(map(re.escape, present))
            text = re.sub(pattern, lambda match: labels[match[0]], text)
        text = _CONTEXT.sub("<context>", _ID.sub("<id>", _NUMBER.sub("0", text)))
        text = _SIGNED.sub("<signed>", _GENERATED_NAME.sub('"<name>"', _TIME.sub("0", text)))
        with contextlib.suppress(ValueError):
            text = json.dumps(_sorted(json.loads(text)), ensure_ascii=False)
        return f"{answer.status} {text}"


def _tells(label: str, value: str) -> bool:
    """Whether a value is nothing but what its label says, wherever it stands."""
    kind = label.split(".")[1]
    is_number = kind == "experiment" or kind in KINDS.values()
    return len(value) > 12 or (is_number and len(value) == len(str(FIRST)))


def _is_telling(label: str, value: str) -> bool:
    return _tells(label, value) and ".hex." not in label


def _sorted(value: Any, field: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _sorted(part, key) for key, part in sorted(value.items())}
    if isinstance(value, list):
        return sorted((_sorted(part) for part in value), key=json.dumps)
    is_number = isinstance(value, int) or (isinstance(value, str) and value.isdecimal())
    return "<number>" if field in _NUMBERS and is_number else value


def leaks(answer: Answer, request: str, hidden: Iterable[str]) -> list[str]:
    """What an answer shows of all that is hidden, and the request did not say itself."""
    return [text for text in hidden if text in answer.text and text not in request]
