"""Runs each event of events/ through the built function, and checks the answer, what it brought
about, and that the function's role allows each call of the table that it made.

    python -m tests.rehearsal.invoke [.aws-sam/build]
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from local.aws.endpoint import AwsEndpoint
from local.aws.kms import Kms
from local.http.routes import Router
from local.template_definitions import RouteDefinition
from tests.arch import grants, project
from tests.arch.rights import TABLE, Right
from tests.doubles.proxy import Answer, Call, Forward, Proxy
from tests.engines import create_table, running_dynoxide
from tests.receiver import receiving
from tests.rehearsal import emulator, events
from tests.rehearsal.stack import credentials, interpreter


def function_of(name: str, event: dict[str, Any]) -> str:
    if name in project.BY_NAME:
        return project.BY_NAME[name]
    if "Records" in event:
        return project.consumer(event)
    if event.get("type") == "REQUEST":
        return "authorizer"
    router = Router(RouteDefinition(key, name) for key, name in project.routes().items())
    chosen = router.match(event["requestContext"]["http"]["method"], event["rawPath"])
    assert chosen is not None
    return chosen.function


class Recorder:
    """A stage before the engine that notes which rights its calls need."""

    def __init__(self) -> None:
        self.needed: set[Right] = set()

    async def __call__(self, call: Call, forward: Forward) -> Answer:
        if call.operation == "TransactWriteItems":
            for item in call.body["TransactItems"]:
                [kind] = item
                self.needed.add((f"dynamodb:{kind}Item", TABLE))
        else:
            index = call.body.get("IndexName")
            where = f"{TABLE}/index/{index}" if index else TABLE
            self.needed.add((f"dynamodb:{call.operation}", where))
        return await forward(call)


def run(name: str, build: Path, variables: dict[str, str], recorder: Recorder, python: Path) -> str:
    """One event; its line of the table. Raises AssertionError."""
    event = events.EVENTS[name]
    domain = function_of(name, event)
    recorder.needed.clear()
    settings = {**variables, **events.SETTINGS.get(domain, {})}
    [logical_id] = [key for key, package in project.handlers().items() if package == domain]
    done = emulator.invoke(build, logical_id, event, python, **settings)
    wrong = events.differences(name, done.answer)
    assert not wrong, "\n".join(wrong)
    granted = grants.of(f"{logical_id.removesuffix('Function')}Role")
    assert recorder.needed <= granted, recorder.needed - granted
    status = done.answer.get("statusCode", "ok")
    return (
        f"{name:26}{domain:16}{status:>7}{done.init_ms:>9.0f}{done.first_ms:>9.0f}"
        f"{done.second_ms:>10.1f}{done.cpu_ms:>8.0f}"
    )


def main(build: Path) -> int:
    python = emulator.runtime(interpreter())
    os.environ.update(credentials())
    failed = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        running_dynoxide() as engine,
        receiving() as hooks,
    ):
        recorder = Recorder()
        proxy = Proxy(engine.endpoint, recorder)
        services = AwsEndpoint(Kms(Path(folder) / "key").operations())
        proxy.start()
        services.start()
        variables = {
            "TABLE_NAME": create_table(engine.endpoint),
            "AWS_ENDPOINT_URL_DYNAMODB": proxy.endpoint,
            "AWS_ENDPOINT_URL_KMS": services.url,
            "SECRETS_KEY_ID": "key",
            "WEBHOOK_QUEUE_URL": "none",
            "ARTIFACT_FOLDER": folder,
            "SYSTEM_TABLES_FOLDER": f"{folder}/tables",
            **credentials(),
        }
        os.environ.update(variables)
        events.prepare(folder, hooks)
        print(
            f"{'event':26}{'function':16}{'answer':>7}"
            f"{'init ms':>9}{'first':>9}{'second':>10}{'cpu':>8}"
        )
        for name in sorted(events.EVENTS):
            try:
                print(run(name, build, variables, recorder, python), flush=True)
                effect = events.EFFECTS.get(name)
                assert effect is None or effect(hooks), (
                    "the answer is right, but nothing came of it"
                )
            except AssertionError as error:
                failed += 1
                print(f"{name}: {error}", file=sys.stderr)
        services.stop()
        proxy.stop()
    print("cpu: ms of user and system time from the interpreter's start to the first answer")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".aws-sam/build").resolve()))
