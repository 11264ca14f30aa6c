"""Runs each event of events/ through the built function in Lambda's runtime interface emulator,
which the SAM CLI ships: no Docker, and the interpreter, layer and handler of Lambda.

    python -m tests.rehearsal.invoke [.aws-sam/build]
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from local.aws_endpoint import AwsEndpoint
from local.kms import Kms
from local.routes import Router
from local.template import RouteDefinition
from tests.arch import project
from tests.engines import ROOT, create_table, free_port, running_dynoxide
from tests.rehearsal.stack import CREDENTIALS, SAM, interpreter
from tests.servers import environment

RUNTIME = ROOT / ".tools" / "lambda-runtime"
PIN = "awslambdaric==4.2.2"
START_SECONDS = 30


class Answer(NamedTuple):
    body: Any
    first_ms: float
    """Start, imports and the invocation itself."""
    second_ms: float


def function_of(event: dict[str, Any]) -> str:
    if "Records" in event:
        return project.consumer(event)
    if event.get("type") == "REQUEST":
        return "authorizer"
    router = Router(RouteDefinition(key, name) for key, name in project.routes().items())
    chosen = router.match(event["requestContext"]["http"]["method"], event["rawPath"])
    assert chosen is not None
    return chosen.function


def emulator() -> Path:
    machine = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
    [found] = SAM.parents[1].glob(f"lib/python3*/site-packages/samcli/local/rapid/*-{machine}")
    return found


def runtime(python: str) -> Path:
    """An interpreter that has Lambda's runtime client."""
    own = RUNTIME / "bin" / "python"
    if not (RUNTIME / PIN).exists():
        uv = str(Path(sys.executable).with_name("uv"))
        for command in (
            ["venv", "--quiet", "--clear", "--python", python, str(RUNTIME)],
            ["pip", "install", "--quiet", "--python", str(own), PIN],
        ):
            subprocess.run([uv, *command], check=True)
        (RUNTIME / PIN).touch()
    return own


def invoke(build: Path, domain: str, event: dict[str, Any], more: dict[str, str]) -> Answer:
    noun = "".join(part.capitalize() for part in domain.split("_"))
    folder = build / f"{noun}Function"
    port = free_port()
    command = [
        *(str(emulator()), "--log-level", "error"),
        *("--runtime-interface-emulator-address", f"127.0.0.1:{port}"),
        *("--runtime-api-address", f"127.0.0.1:{free_port()}"),
        *(more["PYTHON"], "-m", "awslambdaric", f"{domain}.app.handler"),
    ]
    settings = environment(
        **more,
        PYTHONPATH=os.pathsep.join((str(folder), str(build / "CoreLayer" / "python"))),
        AWS_LAMBDA_FUNCTION_NAME=noun,
    )
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, cwd=folder, env=settings, stdout=log, stderr=log, start_new_session=True
        )
        try:
            body, first = post(port, event)
            _, second = post(port, event)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return Answer(body, first, second)


def post(port: int, event: dict[str, Any]) -> tuple[Any, float]:
    url = f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations"
    deadline = time.monotonic() + START_SECONDS
    while True:
        began = time.perf_counter()
        try:
            with urllib.request.urlopen(url, json.dumps(event).encode(), timeout=60) as answer:
                return json.load(answer), 1000 * (time.perf_counter() - began)
        except OSError:
            assert time.monotonic() < deadline, "the runtime interface emulator did not start"
            time.sleep(0.01)


def right(answer: Any) -> bool:
    """Whether the function understood its event; what the event names may be missing."""
    if "statusCode" in answer:
        return answer["statusCode"] < 500
    if "batchItemFailures" in answer:
        return answer["batchItemFailures"] == []
    return bool(answer.get("isAuthorized"))


def main(build: Path) -> int:
    python = runtime(interpreter())
    os.environ.update(CREDENTIALS)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, running_dynoxide() as engine:
        services = AwsEndpoint(Kms(Path(folder) / "key").operations())
        services.start()
        more = {
            "PYTHON": str(python),
            "TABLE_NAME": create_table(engine.endpoint),
            "AWS_ENDPOINT_URL_DYNAMODB": engine.endpoint,
            "AWS_ENDPOINT_URL_KMS": services.url,
            **CREDENTIALS,
            "SECRETS_KEY_ID": "key",
            "WEBHOOK_QUEUE_URL": "none",
            "ARTIFACT_FOLDER": folder,
        }
        print(f"{'event':26}{'function':18}{'answer':>8}{'first ms':>10}{'second ms':>11}")
        for path in sorted((ROOT / "events").glob("*.json")):
            event = json.loads(path.read_text())
            domain = function_of(event)
            answer = invoke(build, domain, event, more)
            fine = right(answer.body)
            wrong += not fine
            status = answer.body.get("statusCode", "ok" if fine else "failed")
            print(
                f"{path.stem:26}{domain:18}{status:>8}{answer.first_ms:>10.0f}{answer.second_ms:>11.1f}"
            )
            if not fine:
                print(json.dumps(answer.body)[:1000])
        services.stop()
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".aws-sam/build").resolve()))
