"""What CloudFront does for the stack, because the emulator's does not reach buckets and APIs:
requests go by the behaviours of the deployed distribution and their functions, to the one or the
other. Answers of the API lose their challenge on the way, as API Gateway may rename it. What the
cache policies allow to be kept is kept and given to everybody."""

from __future__ import annotations

import contextlib
import fnmatch
import http.client
import ssl
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from tests.doubles.edge_function import EdgeFunction
from tests.rehearsal.edge_cache import EdgeCache
from tests.rehearsal.reply import Reply
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


class Distribution:
    """The one that the stack made."""

    def __init__(self, stack: Stack) -> None:
        cloudfront = stack.client("cloudfront")
        domain = stack.outputs["UiUrl"].removeprefix("https://")
        [identity] = [
            item["Id"]
            for item in cloudfront.list_distributions()["DistributionList"]["Items"]
            if item["DomainName"] == domain
        ]
        config = cloudfront.get_distribution_config(Id=identity)["DistributionConfig"]
        self.domain: str = domain
        self.cache = EdgeCache(config)
        self._root: str = config["DefaultRootObject"]
        self._default: Any = config["DefaultCacheBehavior"]
        self._behaviours: list[Any] = config["CacheBehaviors"]["Items"]
        self._origins = {item["Id"]: item for item in config["Origins"]["Items"]}
        self._functions = {
            association["FunctionARN"]: EdgeFunction(
                cloudfront.get_function(
                    Name=association["FunctionARN"].rpartition("/")[2], Stage="LIVE"
                )["FunctionCode"]
                .read()
                .decode()
            )
            for behaviour in (self._default, *self._behaviours)
            for association in behaviour.get("FunctionAssociations", {}).get("Items", ())
        }
        self.word: Mapping[str, str] = {
            item["HeaderName"]: item["HeaderValue"]
            for item in self._origins["api"]["CustomHeaders"]["Items"]
        }
        """The header by which the API knows the distribution."""
        self._files = stack.client("s3")
        self._api = stack.url
        self._apis = {
            (urlsplit(stack.outputs[name]).hostname or "").partition(".")[0]
            for name in ("ApiUrl", "StreamsUrl")
        }

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        path, _, query = target.partition("?")
        matching = (
            behaviour
            for behaviour in self._behaviours
            if fnmatch.fnmatchcase(path, behaviour["PathPattern"])
        )
        behaviour = next(matching, self._default)
        if method not in behaviour["AllowedMethods"]["Items"]:
            return Reply(403, {}, b"")
        for association in behaviour.get("FunctionAssociations", {}).get("Items", ()):
            assert association["EventType"] == "viewer-request"
            function = self._functions[association["FunctionARN"]]
            answered = function.answer(method, path, headers, query)
            if answered is not None:
                status, fields, content = answered
                cookies = [fields.pop(name) for name in ("set-cookie",) if name in fields]
                return Reply(status, fields, content, tuple(cookies))
        kept = self.cache.find(behaviour, method, path)
        if kept is not None:
            return kept
        reply = self._fetch(behaviour, method, target, headers, body)
        self.cache.keep(behaviour, method, path, reply)
        return reply.with_header("X-Cache", "Miss from cloudfront")

    def _fetch(
        self, behaviour: Any, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Reply:
        """The origin's answer."""
        origin = self._origins[behaviour["TargetOriginId"]]
        host = origin["DomainName"]
        if "CustomOriginConfig" not in origin:
            path = target.partition("?")[0]
            return self._file(host.partition(".s3.")[0], path.lstrip("/") or self._root)
        # The emulator's REST API cannot stream and starts no runtime of ours. So calls of that
        # origin go to the HTTP API, which has the same routes and functions.
        assert host.partition(".")[0] in self._apis, (host, self._apis)
        added = {
            item["HeaderName"]: item["HeaderValue"]
            for item in origin.get("CustomHeaders", {}).get("Items", ())
        }
        before = [value for key, value in headers.items() if key.lower() == "x-forwarded-for"]
        added |= {
            "x-forwarded-for": ", ".join((*before, VIEWER)),
            "x-forwarded-proto": "https",  # API Gateway's, which CloudFront reaches by HTTPS
        }
        passed = {key: value for key, value in headers.items() if key.lower() not in added}
        return self.call(method, target, {**passed, **added}, body)

    def _file(self, bucket: str, key: str) -> Reply:
        try:
            file = self._files.get_object(Bucket=bucket, Key=key)
        except ClientError:
            return Reply(403, {"Content-Type": "application/xml"}, _DENIED)
        headers = {"Content-Type": file["ContentType"], "Cache-Control": file["CacheControl"]}
        return Reply(200, headers, file["Body"].read())

    def call(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """What the API answers at its own address."""
        address = urlsplit(self._api)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, address.path + target, body, dict(headers))
            response = connection.getresponse()
            fields = response.getheaders()
            cookies = [value for name, value in fields if name.lower() == "set-cookie"]
            named = {
                RENAMED.get(name.lower(), name): value
                for name, value in fields
                if name.lower() != "set-cookie"
            }
            return Reply(response.status, named, response.read(), tuple(cookies))


@contextlib.contextmanager
def serving(stack: Stack) -> Iterator[str]:
    """The address of the stack's UI, with its API on the same origin."""
    with listening(Distribution(stack)) as port:
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def listening(distribution: Distribution, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of this machine on which a distribution answers, over HTTPS if ``tls`` is given."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            passed = {key: value for key, value in self.headers.items() if key.lower() not in _OWN}
            reply = distribution.answer(self.command, self.path, passed, body)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                if name.lower() not in {*_OWN, "content-length"}:
                    self.send_header(name, value)
            for cookie in reply.cookies:
                self.send_header("Set-Cookie", cookie)
            self.send_header("Content-Length", str(len(reply.content)))
            self.end_headers()
            if self.command != "HEAD":
                try:
                    self.wfile.write(reply.content)
                except OSError:  # a page that is left waits for nothing more
                    self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    for method in METHODS:
        setattr(Handler, f"do_{method}", Handler._answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        # The handshake is the business of the connection's own thread.
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
