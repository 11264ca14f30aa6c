"""A model that detects issues: it answers each kind of question by what the material says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mlcore import artifacts
from mlcore.artifacts.local_folder_store import Folder
from tests.contract.api import Answer, Api
from tests.contract.gateway_world import endpoint, model
from tests.contract.judges_world import World, ask, assessments
from tests.contract.sealing import seal_here

Json = dict[str, Any]
CATEGORIES = ["correctness", "execution"]


def kind_of(chat: Json) -> str:
    """What a chat asks for: ``triage``, ``labels``, ``groups``, ``summary``, ``same``, ``matches``
    or ``evidence``."""
    schema = chat["response_format"]["json_schema"]["schema"]
    names = set(schema["properties"])
    for kind, known in (
        ("triage", {"passed"}),
        ("labels", {"labels"}),
        ("summary", {"severity"}),
        ("matches", {"matches"}),
        ("evidence", {"steps"}),
    ):
        if known <= names:
            return kind
    item = schema["properties"]["groups"]["items"]["properties"]
    return "same" if "root_cause" in item else "groups"


class Detective:
    """Finds that answers with the word WRONG are incorrect and those with CRASH fail; both kinds
    are a problem each."""

    def __init__(self) -> None:
        self.known = False
        """Whether it takes findings for the first issue that it is shown."""

    def say(self, chat: Json) -> Any:
        text = chat["messages"][1]["content"]
        answer: Json = getattr(self, f"_{kind_of(chat)}")(text)
        return answer

    def _triage(self, text: str) -> Json:
        kinds = {"WRONG": "correctness", "CRASH": "execution"}
        failed = [word for word in kinds if word in text]
        return {
            "rationale": f"It said {' and '.join(failed)}." if failed else "All is well.",
            "passed": not failed,
            "categories": [kinds[word] for word in failed],
        }

    def _labels(self, text: str) -> Json:
        return {"labels": [f"answers {word}" for word in ("WRONG", "CRASH") if word in text]}

    def _groups(self, text: str) -> Json:
        lines = text.splitlines()
        words = [word for word in ("WRONG", "CRASH") if word in text]
        groups = [
            {"name": word, "indices": [at for at, line in enumerate(lines) if word in line]}
            for word in words
        ]
        return {"groups": groups}

    def _summary(self, text: str) -> Json:
        word = "WRONG" if "WRONG" in text else "CRASH"
        return {
            "name": f"Issue: Answers say {word}",
            "description": f"Users read {word}.",
            "root_cause": f"A step says {word}.",
            "severity": "high" if word == "CRASH" else "medium",
            "categories": ["execution" if word == "CRASH" else "correctness", "invented"],
        }

    def _same(self, _text: str) -> Json:
        return {"groups": []}

    def _matches(self, text: str) -> Json:
        known, findings = text.split("\nfindings:\n")
        first = json.loads(known.splitlines()[1])["id"] if self.known else None
        return {
            "matches": [
                {"finding_index": number, "issue_id": first}
                for number in range(len(findings.splitlines()))
            ]
        }

    def _evidence(self, text: str) -> Json:
        span = json.loads(text.splitlines()[-1])["span_id"]
        step = {
            "span_id": span,
            "text": "The answer was bad.",
            "highlights": ["bad", "not in the text"],
            "highlight_tone": "error",
            "mono": False,
        }
        foreign = {**step, "span_id": "0000000000000999"}
        return {
            "summary": "The answer was bad.",
            "steps": [step, foreign],
            "primary_span_id": span,
        }


class Detections(World):
    """Judges with an endpoint ``e``, a folder for files, and the detective as the model."""

    def __init__(self, api: Api, patch: pytest.MonkeyPatch, folder: Any) -> None:
        super().__init__(api, patch)
        patch.setattr(artifacts, "store", lambda: Folder(folder))
        seal_here(patch, folder)
        self.endpoint_id = endpoint("e", [model("m", "openai")])
        self.detective = Detective()
        self.model.said = self.detective.say

    def request(self, trace_ids: list[str], /, **fields: Any) -> Answer:
        body = {
            "experiment_id": self.experiment,
            "trace_ids": trace_ids,
            "categories": CATEGORIES,
            "provider": "openai",
            "endpoint_name": "e",
            **fields,
        }
        return ask("POST", "mlflow/issues/invoke", body)

    def begin(self, trace_ids: list[str], **fields: Any) -> Json:
        """``{"job_id", "run_id"}``."""
        answer = self.request(trace_ids, **fields)
        assert answer.status == 200, answer
        return dict(answer.body)

    def detect(self, trace_ids: list[str], **fields: Any) -> Json:
        """The result of a job that does it all at once."""
        begun = self.begin(trace_ids, **fields)
        assert self.work() == []
        job = self.job(begun["job_id"])
        assert job["status"] == "SUCCEEDED", job
        return {**job["result"], **begun}

    def run(self, run_id: str) -> Json:
        """``{"status", "tags"}``."""
        run = self.api.get("runs/get", run_id=run_id)["run"]
        tags = {tag["key"]: tag["value"] for tag in run["data"].get("tags", [])}
        return {"status": run["info"]["status"], "tags": tags}

    def issues(self) -> list[Json]:
        body = {"experiment_id": self.experiment, "include_trace_count": True}
        return list(ask("POST", "mlflow/issues/search", body).body.get("issues", []))

    def asked_kinds(self) -> list[str]:
        return [kind_of(chat) for chat in self.model.asked]


def references(trace_id: str) -> list[Json]:
    """The links of a trace to issues."""
    return [each for each in assessments(trace_id) if "issue" in each]


def five(world: Detections) -> list[str]:
    """Traces of which two are WRONG and one says CRASH."""
    return [world.trace("q", text) for text in ("fine", "WRONG 1", "WRONG 2", "CRASH", "good")]
