"""What CloudFront does for the stack, because the emulator's does not reach buckets and APIs:
requests go by the behaviours of the deployed distribution and their functions, to the one or the
other. Answers of the API lose their challenge on the way, as API Gateway may rename it."""

from __future__ import annotations

import contextlib
import fnmatch
import http.client
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from tests.doubles.edge_function import EdgeFunction
from tests.rehearsal.stack import Stack

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
_OWN = frozenset(("connection", "date", "host", "server", "transfer-encoding"))
"""Headers that belong to one connection; CloudFront passes all but Host to the API."""


RENAMED = {"www-authenticate": "x-amzn-remapped-www-authenticate"}
"""Headers of functions that API Gateway passes on by another name."""
_DENIED = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
)
"""S3's answer for a key that there is not, to a distribution that may not list the bucket."""
VIEWER = "198.51.100.7"


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    content: bytes


class Distribution:
    """The one that the stack made."""

    def __init__(self, stack: Stack) -> None:
        cloudfront = stack.client("cloudfront")
        domain = stack.outputs["UiUrl"].removeprefix("https://")
        [identity] = [
            one["Id"]
            for one in cloudfront.list_distributions()["DistributionList"]["Items"]
            if one["DomainName"] == domain
        ]
        config = cloudfront.get_distribution_config(Id=identity)["DistributionConfig"]
        self._root: str = config["DefaultRootObject"]
        self._default: Any = config["DefaultCacheBehavior"]
        self._behaviours: list[Any] = config["CacheBehaviors"]["Items"]
        self._origins = {one["Id"]: one for one in config["Origins"]["Items"]}
        self._functions = {
            association["FunctionARN"]: EdgeFunction(
                cloudfront.get_function(
                    Name=association["FunctionARN"].rpartition("/")[2], Stage="LIVE"
                )["FunctionCode"]
                .read()
                .decode()
            )
            for one in (self._default, *self._behaviours)
            for association in one.get("FunctionAssociations", {}).get("Items", ())
        }
        self._files = stack.client("s3")
        self._api = stack.url
        self._apis = {
            (urlsplit(stack.outputs[name]).hostname or "").partition(".")[0]
            for name in ("ApiUrl", "StreamsUrl")
        }

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        path = target.partition("?")[0]
        matching = (
            one for one in self._behaviours if fnmatch.fnmatchcase(path, one["PathPattern"])
        )
        behaviour = next(matching, self._default)
        if method not in behaviour["AllowedMethods"]["Items"]:
            return Reply(403, {}, b"")
        for association in behaviour.get("FunctionAssociations", {}).get("Items", ()):
            assert association["EventType"] == "viewer-request"
            found = self._functions[association["FunctionARN"]].answer(method, path, headers)
            if found is not None:
                return Reply(*found)
        origin = self._origins[behaviour["TargetOriginId"]]
        host = origin["DomainName"]
        if "CustomOriginConfig" not in origin:
            return self._file(host.partition(".s3.")[0], path.lstrip("/") or self._root)
        # The emulator's REST API cannot stream and starts no runtime of ours. So calls of that
        # origin go to the HTTP API, which has the same routes and functions.
        assert host.partition(".")[0] in self._apis, (host, self._apis)
        added = {
            one["HeaderName"]: one["HeaderValue"]
            for one in origin.get("CustomHeaders", {}).get("Items", ())
        }
        passed = {key: value for key, value in headers.items() if key.lower() not in added}
        return self._call(method, target, {**passed, **added, "X-Forwarded-For": VIEWER}, body)

    def _file(self, bucket: str, key: str) -> Reply:
        try:
            found = self._files.get_object(Bucket=bucket, Key=key)
        except ClientError:
            return Reply(403, {"Content-Type": "application/xml"}, _DENIED)
        headers = {"Content-Type": found["ContentType"], "Cache-Control": found["CacheControl"]}
        return Reply(200, headers, found["Body"].read())

    def _call(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        place = urlsplit(self._api)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, place.path + target, body, dict(headers))
            response = connection.getresponse()
            named = {
                RENAMED.get(name.lower(), name): value for name, value in response.getheaders()
            }
            return Reply(response.status, named, response.read())


@contextlib.contextmanager
def serving(stack: Stack) -> Iterator[str]:
    """The address of the stack's UI, with its API on the same origin."""
    distribution = Distribution(stack)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            passed = {key: value for key, value in self.headers.items() if key.lower() not in _OWN}
            reply = distribution.answer(self.command, self.path, passed, body)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                if name.lower() not in {*_OWN, "content-length"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.content)

        def log_message(self, *_: Any) -> None:
            pass

    for method in METHODS:
        setattr(Handler, f"do_{method}", Handler._answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
