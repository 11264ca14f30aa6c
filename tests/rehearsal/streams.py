"""What API Gateway's REST API and Lambda do for streams of the stack, because the emulator cannot:
requests are authorized by the deployed authorizer, and answered by processes of the built function
under its own runtime, each part as it comes."""

from __future__ import annotations

import base64
import contextlib
import json
import queue
import subprocess
import threading
import uuid
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import parse_qsl, urlsplit

from tests.doubles.runtime_api import Answered, RuntimeApiDouble
from tests.rehearsal import aliases, emulator
from tests.rehearsal.emulator import MACHINE
from tests.rehearsal.front import RENAMED, VIEWER
from tests.rehearsal.layer_builds import build as built_layer
from tests.rehearsal.stack import Stack, interpreter
from tests.servers import environment

FUNCTION: Final = "GatewayCallsFunction"
AUTHORIZER: Final = "AuthorizerFunction"
CONFIGURING: Final = "GatewayFunction"
PROVIDERS_HERE: Final = {
    "MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES": "http",
    "MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS": "true",
}
_END_OF_METADATA: Final = bytes(8)
_OF_CONNECTION: Final = frozenset(("connection", "content-length", "transfer-encoding"))


class Instance:
    """A process of the built function, which answers one request after the other."""

    def __init__(self, command: list[str], variables: Mapping[str, str], log: IO[bytes]) -> None:
        self.api = RuntimeApiDouble()
        self._process = subprocess.Popen(
            command,
            env={**variables, "AWS_LAMBDA_RUNTIME_API": self.api.address},
            stdout=log,
            stderr=log,
        )

    def answer(self, event: Mapping[str, Any]) -> Answered:
        """The beginning of an answer; :meth:`become_free` waits for its end."""
        self.become_free()
        self.api.asked.clear()
        self.api.leave_after = None
        self.api.invoke(event, event["requestContext"]["requestId"])
        return self.api.answered.get(timeout=60)

    def leave(self) -> None:
        """Takes no more of the answer."""
        self.api.leave_after = b""

    def become_free(self) -> None:
        assert self.api.asked.wait(60), "the function asks for no request"

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            self.api.close()


class StreamsApi:
    """The REST API at ``StreamsUrl``."""

    def __init__(self, stack: Stack, instances: list[Instance]) -> None:
        self._functions = stack.client("lambda")
        self._authorizer = aliases.functions(stack)[AUTHORIZER]
        self._free: queue.Queue[Instance] = queue.Queue()
        for instance in instances:
            self._free.put(instance)

    def authorized(self, event: Mapping[str, Any]) -> dict[str, Any] | None:
        """What the authorizer says of the caller; None for a request that it refuses."""
        asked = {name: event[name] for name in event if name not in ("body", "isBase64Encoded")}
        asked |= {"type": "REQUEST", "methodArn": "arn:aws:execute-api:::api/live/POST/gateway"}
        response = self._functions.invoke(
            FunctionName=self._authorizer, Qualifier="live", Payload=json.dumps(asked).encode()
        )
        answer = json.load(response["Payload"])
        [statement] = answer["policyDocument"]["Statement"]
        if statement["Effect"] != "Allow":
            return None
        return {**answer["context"], "principalId": answer["principalId"], "integrationLatency": 1}

    @contextlib.contextmanager
    def answering(self, event: Mapping[str, Any]) -> Iterator[Answered]:
        """The answer of an instance that has nothing else to do until the answer is left."""
        instance = self._free.get(timeout=60)
        try:
            yield instance.answer(event)
        except OSError:  # the caller has left
            instance.leave()
            raise
        finally:
            instance.become_free()
            self._free.put(instance)


def rest_event(
    method: str, target: str, headers: list[tuple[str, str]], body: bytes
) -> dict[str, Any]:
    """The event that API Gateway makes of a request, in payload format 1.0, without authorizer."""
    address = urlsplit(target)
    named: dict[str, list[str]] = {}
    for name, value in headers:
        named.setdefault(name, []).append(value)
    named["X-Forwarded-For"] = [VIEWER]
    query: dict[str, list[str]] = {}
    for name, value in parse_qsl(address.query, keep_blank_values=True):
        query.setdefault(name, []).append(value)
    return {
        "resource": "/gateway/{proxy+}",
        "path": address.path,
        "httpMethod": method,
        "multiValueHeaders": named,
        "multiValueQueryStringParameters": query or None,
        "requestContext": {
            "apiId": "streams",
            "requestId": str(uuid.uuid4()),
            "identity": {"sourceIp": VIEWER},
        },
        "body": base64.b64encode(body).decode() or None,
        "isBase64Encoded": bool(body),
    }


@contextlib.contextmanager
def serving(stack: Stack, folder: Path, count: int = 3) -> Iterator[str]:
    """The address of the REST API of a stack whose providers are on this machine.

    Args:
        folder: for logs.
        count: how many requests are answered at the same time; others wait.
    """
    with contextlib.ExitStack() as ending:
        log = ending.enter_context((folder / "gateway-calls.log").open("ab"))
        command, variables = _runtime(stack, folder)
        instances = []
        for _ in range(count):
            instances.append(Instance(command, variables, log))
            ending.callback(instances[-1].stop)
        server = _listening(StreamsApi(stack, instances))
        ending.callback(server.server_close)
        ending.callback(server.shutdown)
        yield f"http://127.0.0.1:{server.server_address[1]}"


@contextlib.contextmanager
def allowing_providers_here(stack: Stack) -> Iterator[None]:
    """The gateway's configuration may name providers on this machine, as no deployment allows."""
    service = stack.client("lambda")
    name = aliases.functions(stack)[CONFIGURING]
    live = service.get_alias(FunctionName=name, Name="live")["FunctionVersion"]
    variables = service.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    service.update_function_configuration(
        FunctionName=name, Environment={"Variables": {**variables, **PROVIDERS_HERE}}
    )
    version = service.publish_version(FunctionName=name)["Version"]
    service.update_alias(FunctionName=name, Name="live", FunctionVersion=version)
    try:
        yield
    finally:
        service.update_alias(FunctionName=name, Name="live", FunctionVersion=live)
        service.update_function_configuration(
            FunctionName=name, Environment={"Variables": variables}
        )


def _runtime(stack: Stack, folder: Path) -> tuple[list[str], dict[str, str]]:
    """How Lambda starts the deployed function, and the environment that it gives it: credentials of
    the function's role, its variables, and what lets it call providers of this machine."""
    service = stack.client("lambda")
    deployed = service.get_function_configuration(
        FunctionName=aliases.functions(stack)[FUNCTION], Qualifier="live"
    )
    role = stack.client("sts").assume_role(RoleArn=deployed["Role"], RoleSessionName="rehearsal")
    keys = role["Credentials"]
    own = dict(deployed["Environment"]["Variables"])
    python = emulator.runtime(interpreter())
    code = stack.build / FUNCTION
    wrapper = own.pop("AWS_LAMBDA_EXEC_WRAPPER").replace("/var/task", str(code))
    layer = built_layer("CoreLayer", "layers/core", interpreter(), folder, MACHINE)
    variables = environment(
        **own,
        AWS_ENDPOINT_URL=stack.endpoint,
        AWS_REGION=stack.region,
        AWS_DEFAULT_REGION=stack.region,
        AWS_ACCESS_KEY_ID=keys["AccessKeyId"],
        AWS_SECRET_ACCESS_KEY=keys["SecretAccessKey"],
        AWS_SESSION_TOKEN=keys["SessionToken"],
        LAMBDA_TASK_ROOT=str(code),
        _HANDLER=deployed["Handler"],
        PYTHONPATH=str(layer / "python"),
        **PROVIDERS_HERE,
    )
    return [wrapper, str(python)], variables


def _listening(api: StreamsApi) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            body = self._body()
            headers = [(name, value) for name, value in self.headers.items()]
            event = rest_event(self.command, self.path, headers, body)
            caller = api.authorized(event)
            if caller is None:
                self._send_whole(403, b'{"message":"Forbidden"}')
                return
            event["requestContext"]["authorizer"] = caller
            with api.answering(event) as answered:
                if answered.path.endswith("/error"):
                    self._send_whole(502, b'{"message":"Internal server error"}')
                else:
                    self._send_parts(answered)

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            content = b""
            while size := int(self.rfile.readline(), 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return content

        def _send_whole(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _send_parts(self, answered: Answered) -> None:
            before = answered.take(_END_OF_METADATA)
            head, _, content = before.partition(_END_OF_METADATA)
            metadata = json.loads(head)
            self.send_response(metadata["statusCode"])
            for name, value in metadata.get("headers", {}).items():
                if name.lower() not in _OF_CONNECTION:
                    self.send_header(RENAMED.get(name.lower(), name), value)
            for cookie in metadata.get("cookies", ()):
                self.send_header("Set-Cookie", cookie)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while True:
                if content:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))
                try:
                    content = answered.chunks.get(timeout=0.05)
                except queue.Empty:
                    content = b""
                    if answered.is_complete.is_set() and answered.chunks.empty():
                        break
            if answered.trailers:  # the function failed: the answer has no end
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_: Any) -> None:
            pass

    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        setattr(Handler, f"do_{method}", Handler._answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server
