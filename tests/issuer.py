"""An OpenID Connect issuer on this machine: it has keys, says so, and signs what it is told to."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def rsa_key(bits: int = 2_048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65_537, bits)


def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


class Issuer:
    """``public`` is what it publishes, ``asked`` counts how often it was asked for it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.named = url
        self.answers = True
        self.asked = 0
        self.more: dict[str, Any] = {}
        """Further fields of its configuration."""
        self.codes: dict[str, dict[str, Any]] = {}
        """What the token endpoint answers, by code; each once."""
        self.challenges: dict[str, str] = {}
        """The PKCE challenge of a code; one without a challenge is given to anybody."""
        self.user: dict[str, Any] | None = None
        """What the user information says."""
        self.exchanges: list[dict[str, str]] = []
        self.public: dict[str, dict[str, Any]] = {}
        self.private: dict[str, Private] = {}

    def publish(self, kid: str, key: Private, **more: str) -> None:
        if isinstance(key, rsa.RSAPrivateKey):
            jwk = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
        else:
            jwk = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
        self.public[kid] = {**jwk, "kid": kid, "use": "sig", **more}
        self.private[kid] = key

    def token(self, kid: str, key: Any = None, algorithm: str | None = None, **claims: Any) -> str:
        """A token for an hour; a claim that is None is left out."""
        now = int(time.time())
        payload = {
            "iss": self.url,
            "aud": "mlflow",
            "exp": now + 3_600,
            "iat": now,
            "sub": "1",
            "email": "ada@example.org",
            **claims,
        }
        kept = {name: value for name, value in payload.items() if value is not None}
        signing = self.private[kid] if key is None else key
        fitting = "RS256" if isinstance(signing, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(kept, signing, algorithm or fitting, headers={"kid": kid})


@contextlib.contextmanager
def running() -> Iterator[Issuer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked += 1
            documents: dict[str, Any] = {
                "/.well-known/openid-configuration": {
                    "issuer": issuer.named,
                    "jwks_uri": f"{issuer.url}/keys",
                    "authorization_endpoint": f"{issuer.url}/authorize",
                    "token_endpoint": f"{issuer.url}/token",
                    "userinfo_endpoint": f"{issuer.url}/user",
                    "end_session_endpoint": f"{issuer.url}/end",
                    **issuer.more,
                },
                "/keys": {"keys": list(issuer.public.values())},
                "/user": issuer.user,
            }
            document = documents.get(self.path) if issuer.answers else None
            self._send(503 if document is None else 200, document)

        def do_POST(self) -> None:
            """The token endpoint: a code is good once, for whoever knows its PKCE verifier."""
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = dict(parse_qsl(text))
            issuer.exchanges.append(form | {"login": self.headers.get("Authorization", "")})
            answer = issuer.codes.pop(form.get("code", ""), None)
            challenge = issuer.challenges.get(form.get("code", ""))
            digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            is_proven = challenge in (None, base64.urlsafe_b64encode(digest).rstrip(b"=").decode())
            if answer is None or not is_proven or not issuer.answers:
                self._send(400 if issuer.answers else 503, {"error": "invalid_grant"})
            else:
                self._send(200, answer)

        def _send(self, status: int, document: Any) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = Issuer(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
