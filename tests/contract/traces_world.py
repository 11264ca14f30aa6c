"""Random writes of traces through the API, and what the system tables should say of them."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import Any

from mlcore.db import keys
from mlcore.entities.workspaces import Workspace
from mlcore.repos.removal import permanent_deletion, workspace_moves
from mlcore.repos.workspaces import workspaces
from mlcore.system_tables import trace_landing
from tests.contract.conftest import Store
from tests.contract.streams import Record
from tests.contract.trace_calls import START, export, span, start, tell

HOME, AWAY = "default", "team"
TEXTS = ("plain", "ünïcode 😀", "a,b\n'quoted' \"too\"", "", "nul \x00 inside")
VALUES: tuple[Any, ...] = (True, False, -3.5, 0.25, "yes", ["a", 1.5], {"deep": None})
MONTH_MS = 31 * 86_400_000
START_MS = 1_700_000_000_000

State = dict[str, Any]


class TracesWorld:
    """Does random things with traces and remembers what they mean."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store, self.rng = store, random.Random(seed)
        if AWAY not in workspaces.names():  # another world may have made it
            workspaces.create(Workspace(AWAY, None))
        self.workspaces: dict[str, str] = {}
        """The workspace of each experiment."""
        self.traces: dict[str, State] = {}
        self.expired: dict[tuple[str, str], list[State]] = {}
        """The states that an expired trace once had, by experiment and trace."""
        self._past: dict[str, list[State]] = {}
        self._touched: set[str] = set()
        """The traces that the current step may have changed."""
        self._number = 0

    def step(self) -> None:
        rng = self.rng
        acts = [self.create, self.create, self.tag, self.untag, self.restart, self.judge]
        acts += [self.judge, self.judge_again, self.unjudge, self.export]
        acts += [self.delete] if rng.random() < 0.4 else []
        acts += [self.expire] if rng.random() < 0.2 else []
        acts += [self.forget] if self.expired and rng.random() < 0.5 else []
        acts += [self.move] if rng.random() < 0.3 else []
        acts += [self.purge] if rng.random() < 0.1 else []
        if len(self.workspaces) < 3:
            acts = [self.new_experiment]
        self._touched.clear()
        rng.choice(acts)()
        for trace_id in self._touched & self.traces.keys():
            copy = json.loads(json.dumps(self.traces[trace_id]))
            past = self._past.setdefault(trace_id, [])
            if not past or past[-1] != copy:
                past.append(copy)

    def completed(self, records: list[Record]) -> list[Record]:
        """Adds to the records of expired items who removed them, as Lambda passes it."""
        for record in records:
            if record["eventName"] == "REMOVE" and record["dynamodb"]["OldImage"].get("ttl") == {
                "N": "1"
            }:
                record["userIdentity"] = {
                    "type": "Service",
                    "principalId": "dynamodb.amazonaws.com",
                }
        return records

    def _reachable(self) -> list[str]:
        """The experiments that the API reaches."""
        return [key for key, workspace in self.workspaces.items() if workspace == HOME]

    def _trace(self) -> str | None:
        reachable = self._reachable()
        items = [key for key, state in self.traces.items() if state["experiment"] in reachable]
        trace_id = self.rng.choice(items) if items else None
        self._touched |= {trace_id} if trace_id is not None else set()
        return trace_id

    def _time(self) -> int:
        return START_MS + self.rng.randrange(-2 * MONTH_MS, MONTH_MS)

    def new_experiment(self) -> None:
        self._number += 1
        made = self.store.api.new_experiment(f"traced {self._number}")
        self.workspaces[made] = HOME

    def _told(self, trace_id: str, experiment: str) -> State:
        """Starts a trace anew, and returns what was told."""
        at, lasted = self._time(), self.rng.choice((0, 17, 3_600_000))
        state = self.rng.choice(("OK", "ERROR"))
        metadata = {"mlflow.trace.session": f"s{self.rng.randrange(3)}", "note": self._text()}
        if self.rng.random() < 0.5:
            usage = {"input_tokens": self.rng.randrange(9), "output_tokens": 2, "total_tokens": 9}
            metadata["mlflow.trace.tokenUsage"] = json.dumps(usage)
        moment = datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")
        body = start(
            experiment,
            trace_id,
            request_time=moment.replace("+00:00", "Z"),
            execution_duration=f"{lasted / 1000:.3f}s",
            state=state,
            request_preview=self._text(),
            trace_metadata=metadata,
            tags={"mlflow.traceName": "named"},
        )
        tell("POST", "3.0/traces", body)
        return {"at": at, "lasted": lasted, "state": state, "metadata": metadata}

    def _text(self) -> str:
        return self.rng.choice(TEXTS)

    def create(self) -> None:
        reachable = self._reachable()
        if not reachable:
            return
        trace_id, experiment = f"tr-{self.rng.getrandbits(128):032x}", self.rng.choice(reachable)
        if self._past and self.rng.random() < 0.2:
            # An id that was deleted is free again. One that expired has rows still, and nobody
            # makes it anew: ids are random.
            taken = self.traces.keys() | {expired_id for _, expired_id in self.expired}
            free = [past_id for past_id in self._past if past_id not in taken]
            trace_id = self.rng.choice(free) if free else trace_id
        self._touched.add(trace_id)
        started = self._told(trace_id, experiment)
        self.expired.pop((experiment, trace_id), None)
        self.traces[trace_id] = {
            **{"experiment": experiment, "tags": {}, "judged": {}, "spans": {}},
            **started,
        }

    def restart(self) -> None:
        """The client reports the trace once more, perhaps with a time of another day."""
        trace_id = self._trace()
        if trace_id is not None:
            state = self.traces[trace_id]
            started = self._told(trace_id, state["experiment"])
            self.traces[trace_id] = {
                **state,
                **started,
                "metadata": {**state["metadata"], **started["metadata"]},
            }

    def export(self) -> None:
        """Spans of a trace whose info the client has reported: they change nothing of it. Of a span
        that is exported again the version with the latest end counts."""
        trace_id = self._trace()
        if trace_id is None:
            return
        sent = []
        for number in self.rng.sample(range(1, 6), self.rng.choice((1, 1, 3))):
            self._number += 1
            parent = None if number == 1 else 1
            # No two ends are equal.
            end = self.rng.randrange(5) * 10_000 + self._number
            note = self._text()
            sent.append(
                span(trace_id.removeprefix("tr-"), number, parent, start=number, end=end, note=note)
            )
            known = self.traces[trace_id]["spans"].get(str(number))
            if known is None or end > known[0]:
                self.traces[trace_id]["spans"][str(number)] = [end, parent, note]
        for _ in range(self.rng.choice((1, 1, 2))):
            assert export(self.traces[trace_id]["experiment"], sent).status == 200

    def tag(self) -> None:
        trace_id = self._trace()
        if trace_id is not None:
            key, value = f"t{self.rng.randrange(3)}", self._text() or "x"
            tell("PATCH", f"3.0/traces/{trace_id}/tags", {"key": key, "value": value})
            self.traces[trace_id]["tags"][key] = value

    def untag(self) -> None:
        trace_id = self._trace()
        if trace_id is not None and self.traces[trace_id]["tags"]:
            key = self.rng.choice(sorted(self.traces[trace_id]["tags"]))
            tell("DELETE", f"3.0/traces/{trace_id}/tags", {"key": key})
            del self.traces[trace_id]["tags"][key]

    def judge(self) -> None:
        trace_id = self._trace()
        if trace_id is not None:
            value, kind = self.rng.choice(VALUES), self.rng.choice(("feedback", "expectation"))
            assessment = {
                "assessment_name": f"a{self.rng.randrange(3)}",
                "source": {"source_type": "HUMAN", "source_id": "ann"},
                kind: {"value": value},
                "metadata": {"why": self._text()},
            }
            answer = tell("POST", f"3.0/traces/{trace_id}/assessments", {"assessment": assessment})[
                "assessment"
            ]
            self.traces[trace_id]["judged"][answer["assessment_id"]] = [
                assessment["assessment_name"],
                kind,
                json.dumps(value),
                assessment["metadata"],
                None,
            ]

    def _judgement(self, kind: str = "") -> tuple[str, str] | None:
        trace_id = self._trace()
        assessments = self.traces[trace_id]["judged"] if trace_id is not None else {}
        judged = sorted(
            assessment_id
            for assessment_id in assessments
            if kind in ("", assessments[assessment_id][1])
        )
        return (trace_id, self.rng.choice(judged)) if trace_id is not None and judged else None

    def judge_again(self) -> None:
        judgement = self._judgement("feedback")
        if judgement is not None:
            text = self._text() or "because"
            tell(
                "PATCH",
                f"3.0/traces/{judgement[0]}/assessments/{judgement[1]}",
                {"assessment": {"rationale": text}, "update_mask": "rationale"},
            )
            self.traces[judgement[0]]["judged"][judgement[1]][4] = text

    def unjudge(self) -> None:
        judgement = self._judgement()
        if judgement is not None:
            tell("DELETE", f"3.0/traces/{judgement[0]}/assessments/{judgement[1]}")
            del self.traces[judgement[0]]["judged"][judgement[1]]

    def delete(self) -> None:
        trace_id = self._trace()
        if trace_id is not None:
            body = {
                "experiment_id": self.traces[trace_id]["experiment"],
                "request_ids": [trace_id],
            }
            assert tell("POST", "2.0/traces/delete-traces", body)["traces_deleted"] == 1
            del self.traces[trace_id]

    def expire(self) -> None:
        """As DynamoDB takes away what has an end: item by item, in no order."""
        trace_id = self._trace()
        if trace_id is None:
            return
        experiment = self.traces.pop(trace_id)["experiment"]
        key = keys.trace(experiment, trace_id)
        direct, table = self.store.direct, self.store.table
        stored = direct.query(
            TableName=table,
            KeyConditionExpression="PK = :pk AND begins_with(SK, :sk)",
            ExpressionAttributeValues={":pk": {"S": key.pk}, ":sk": {"S": key.sk}},
        )["Items"]
        reference = keys.trace_ref(trace_id)
        items = [*stored, {"PK": {"S": reference.pk}, "SK": {"S": reference.sk}}]
        self.rng.shuffle(items)
        for item in items:
            item_key = {"PK": item["PK"], "SK": item["SK"]}
            direct.update_item(
                TableName=table,
                Key=item_key,
                UpdateExpression="SET #t = :one",
                ExpressionAttributeNames={"#t": "ttl"},
                ExpressionAttributeValues={":one": {"N": "1"}},
            )
            direct.delete_item(TableName=table, Key=item_key)
        past = self._past.get(trace_id, [])
        self.expired[experiment, trace_id] = [
            state for state in past if state["experiment"] == experiment
        ]

    def forget(self) -> None:
        """An expired trace is deleted from the system tables: its id is free, too."""
        experiment, trace_id = self.rng.choice(sorted(self.expired))
        trace_landing.forget(experiment, [trace_id])
        del self.expired[experiment, trace_id]

    def move(self) -> None:
        """To another workspace, where the API does not reach it, or back."""
        experiment = self.rng.choice(sorted(self.workspaces))
        to = AWAY if self.workspaces[experiment] == HOME else HOME
        self.workspaces[experiment] = to
        workspace_moves.experiment(experiment, to)

    def purge(self) -> None:
        reachable = self._reachable()
        if not reachable:
            return
        experiment = self.rng.choice(reachable)
        self.store.api.post("experiments/delete", experiment_id=experiment)
        permanent_deletion.experiment(experiment)
        del self.workspaces[experiment]
        self.traces = {
            key: state for key, state in self.traces.items() if state["experiment"] != experiment
        }
        self.expired = {key: past for key, past in self.expired.items() if key[0] != experiment}

    # ------------------------------------------------------------ what the tables should say

    def row(self, trace_id: str, state: State) -> dict[str, Any]:
        """What a row of ``traces`` should say, as far as the model knows."""
        metadata = state["metadata"]
        usage = json.loads(metadata.get("mlflow.trace.tokenUsage", "{}"))
        return {
            "trace_id": trace_id,
            "experiment_id": state["experiment"],
            "workspace_id": self.workspaces[state["experiment"]],
            "request_time": datetime.fromtimestamp(state["at"] / 1000, UTC),
            "request_date": datetime.fromtimestamp(state["at"] / 1000, UTC).date().isoformat(),
            "execution_duration_ms": state["lasted"],
            "state": state["state"],
            "session_id": metadata["mlflow.trace.session"],
            "trace_name": "named",
            "total_tokens": usage.get("total_tokens"),
            "input_tokens": usage.get("input_tokens"),
            "note": metadata["note"],
            "tags": dict(sorted(state["tags"].items())),
        }

    def judgements(self, trace_id: str, state: State) -> list[Any]:
        """What the rows of ``assessments`` should say."""
        trace_columns = (state["experiment"], self.workspaces[state["experiment"]], trace_id)
        return [
            (*trace_columns, assessment_id, *values)
            for assessment_id, values in sorted(state["judged"].items())
        ]

    def span_rows(self, trace_id: str, state: State) -> list[Any]:
        """What the rows of ``spans`` should say, as far as the model knows."""
        row = self.row(trace_id, state)
        names = ("experiment_id", "workspace_id", "trace_id", "request_time", "request_date")
        return [
            (
                *(row[name] for name in names),
                f"{int(number):016x}",
                None if parent is None else f"{parent:016x}",
                f"span {number}",
                START + int(number) * 1_000_000,
                START + end * 1_000_000,
                note,
            )
            for number, (end, parent, note) in sorted(state["spans"].items())
        ]
