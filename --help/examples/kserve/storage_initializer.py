"""A storage initializer for KServe: downloads the files of a model in this registry.

    storage_initializer.py <uri> <folder>

    model-registry://churn/v3            version v3 of churn, by its name in Kubeflow's API
    model-registry://churn               its newest version
    models:/churn/3                      version 3 of churn, by MLflow's number
    models:/churn@champion               the version of an alias
    models:/m-0123…                      a logged model

As in Kubeflow's URIs, the server's name may precede the model's
(``model-registry://registry.example/churn/v3``). It must be the configured server, so that a URI
cannot send the credentials elsewhere. Files are downloaded from presigned URLs of the server's
bucket, without the credentials; an ``s3://`` URI of another bucket is refused. Needs only Python
3.9 or later.

Environment:
    MLFLOW_TRACKING_URI or MODEL_REGISTRY_BASE_URL: the server.
    MLFLOW_TRACKING_TOKEN, MLFLOW_TRACKING_TOKEN_FILE: a bearer token, or the file that holds it; or
    MLFLOW_TRACKING_USERNAME, MLFLOW_TRACKING_PASSWORD: a login.
    MLFLOW_WORKSPACE: the workspace, where the server has workspaces.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

REGISTRY = "/api/model_registry/v1"
MLFLOW = "/api/2.0/mlflow"
FILES = "/api/2.0/mlflow-artifacts/artifacts"

ATTEMPTS = 5
SECONDS = 60
BUSY = (429, 500, 502, 503, 504)


class Failed(Exception):
    """The model cannot be downloaded; the message says why."""


class _WithoutLogin(HTTPRedirectHandler):
    """Follows redirects to another server without the headers that hold the credentials."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str):  # type: ignore[no-untyped-def]
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise HTTPError(newurl, code, "a redirect to another protocol than HTTP", headers, fp)
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None and _origin(newurl) != _origin(req.full_url):
            for name in ("Authorization", "X-mlflow-workspace"):
                following.remove_header(name)
        return following


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return parts.scheme, (parts.hostname or "").lower(), port


class Server:
    """A client of the registry, with the credentials of the environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        url = environment.get("MLFLOW_TRACKING_URI") or environment.get("MODEL_REGISTRY_BASE_URL")
        if not url or urlsplit(url).scheme not in ("http", "https"):
            raise Failed("MLFLOW_TRACKING_URI must be the registry's http or https URL")
        self.url = url.rstrip("/")
        self._headers = {**_login(environment)}
        if environment.get("MLFLOW_WORKSPACE"):
            self._headers["X-MLFLOW-WORKSPACE"] = environment["MLFLOW_WORKSPACE"]
        self._opener = build_opener(_WithoutLogin())

    def json(self, path: str, /, **query: str) -> Any:
        """The JSON that a GET request returns; None if the server answers 404."""
        try:
            with self._open(f"{path}?{urlencode(query)}") as answer:
                return json.load(answer)
        except HTTPError as error:
            if error.code == 404:
                return None
            raise Failed(f"{path}: {error.code} {_why(error)}") from None

    def fetch(self, path: str, target: Path, bucket: str) -> bool:
        """Downloads a file; False if it does not exist. The target is written completely or not at
        all.

        Args:
            bucket: the bucket from which the file must come; "" accepts any bucket of the server.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        try:
            for attempt in range(ATTEMPTS):
                with self._open(f"{FILES}/{quote(path)}") as answer, part.open("wb") as file:
                    if bucket and not _is_of_bucket(answer.geturl(), bucket):
                        raise Failed(f"the bucket {bucket!r} is not the one that {self.url} keeps")
                    shutil.copyfileobj(answer, file, 1 << 20)
                size = answer.headers.get("content-length")
                if size is None or part.stat().st_size == int(size):
                    part.replace(target)
                    return True
                time.sleep(2**attempt / 10)
            raise Failed(f"{path}: the connection ended early, {ATTEMPTS} times")
        except HTTPError as error:
            if error.code == 404:
                return False
            raise Failed(f"{path}: {error.code} {_why(error)}") from None
        finally:
            part.unlink(missing_ok=True)

    def _open(self, path: str) -> Any:
        for attempt in range(ATTEMPTS):
            try:
                # The constructor has checked that the scheme is HTTP or HTTPS.
                request = Request(self.url + path, headers=self._headers)  # noqa: S310
                return self._opener.open(request, timeout=SECONDS)
            except HTTPError as error:
                if error.code not in BUSY or attempt + 1 == ATTEMPTS:
                    raise
            except (URLError, TimeoutError, ConnectionError) as error:
                if attempt + 1 == ATTEMPTS:
                    raise Failed(f"{self.url} does not answer: {error}") from None
            time.sleep(2**attempt / 10)
        raise AssertionError


def _is_of_bucket(url: str, bucket: str) -> bool:
    """Whether a presigned URL belongs to a bucket: its host or its path begins with the name."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return host.startswith(f"{bucket.lower()}.") or parts.path.startswith(f"/{bucket}/")


def _login(environment: Mapping[str, str]) -> dict[str, str]:
    token = environment.get("MLFLOW_TRACKING_TOKEN", "")
    file = environment.get("MLFLOW_TRACKING_TOKEN_FILE")
    if not token and file:
        token = Path(file).read_text(encoding="utf-8").strip()
    if token:
        return {"Authorization": f"Bearer {token}"}
    username = environment.get("MLFLOW_TRACKING_USERNAME", "")
    if not username:
        return {}
    login = f"{username}:{environment.get('MLFLOW_TRACKING_PASSWORD', '')}"
    return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}


def _why(error: HTTPError) -> str:
    try:
        text = error.read(2_000).decode(errors="replace")
    except OSError:
        return ""
    try:
        return str(json.loads(text).get("message", text))
    except ValueError:
        return text


# ------------------------------------------------------------------ where the files are


def location_of(server: Server, uri: str) -> tuple[str, str]:
    """The path of a model's files below the server's artifact root, and the bucket if the URI names
    one."""
    if uri.startswith("model-registry://"):
        uri = _of_registry(server, uri)
    if uri.startswith("models:/"):
        uri = _of_mlflow(server, uri)
    parts = urlsplit(uri)
    path = unquote(parts.path).strip("/")
    proxied = parts.scheme in ("http", "https") and parts.path.startswith(f"{FILES}/")
    if proxied and _origin(uri) == _origin(server.url):
        return path[len(FILES) :].strip("/"), ""
    if parts.scheme in ("mlflow-artifacts", "s3"):
        return path, parts.netloc if parts.scheme == "s3" else ""
    raise Failed(f"{uri} is not stored by {server.url}: use an initializer for its scheme")


def _of_registry(server: Server, uri: str) -> str:
    """The URI of a version's model artifact, found by names with Kubeflow's API."""
    names = uri[len("model-registry://") :].strip("/").split("/")
    if names[0] and _is_host(names[0]) and len(names) > 1:
        host = names.pop(0).lower()
        if host not in (urlsplit(server.url).netloc.lower(), urlsplit(server.url).hostname):
            raise Failed(f"{uri} names another server than {server.url}")
    name, version = unquote(names[0]), unquote("/".join(names[1:]))
    model = server.json(f"{REGISTRY}/registered_model", name=name)
    if model is None:
        raise Failed(f"there is no model {name!r}, or it may not be read")
    if version:
        query = {"name": version, "parentResourceId": model["id"]}
        model_version = server.json(f"{REGISTRY}/model_version", **query)
    else:
        newest = {"orderBy": "CREATE_TIME", "sortOrder": "DESC", "pageSize": "1"}
        listed = server.json(f"{REGISTRY}/registered_models/{model['id']}/versions", **newest)
        model_version = next(iter(listed["items"]), None)
    if model_version is None:
        raise Failed(f"the model {name!r} has no version {version!r}")
    artifacts = server.json(
        f"{REGISTRY}/model_versions/{model_version['id']}/artifacts",
        artifactType="model-artifact",
        orderBy="ID",
    )
    for artifact in artifacts["items"]:
        if artifact.get("uri"):
            return str(artifact["uri"])
    raise Failed(f"version {model_version['name']!r} of the model {name!r} has no model artifact")


def _is_host(text: str) -> bool:
    """Whether the first segment of a URI is a host: ``localhost``, or a name with a dot or port."""
    return (
        text == "localhost" or re.fullmatch(r"[\w.-]+\.[\w-]+(:\d+)?|[\w.-]+:\d+", text) is not None
    )


def _of_mlflow(server: Server, uri: str) -> str:
    """The artifact URI of a model version or a logged model, found with MLflow's API."""
    name, _, version = uri[len("models:/") :].strip("/").partition("/")
    name, _, alias = unquote(name).partition("@")
    if alias:
        query = {"name": name, "alias": alias}
        answer = server.json(f"{MLFLOW}/registered-models/alias", **query)
        version = "" if answer is None else str(answer["model_version"]["version"])
    elif not version:
        answer = server.json(f"{MLFLOW}/logged-models/{quote(name, safe='')}")
        if answer is None:
            raise Failed(f"there is no logged model {name!r}, or it may not be read")
        return str(answer["model"]["info"]["artifact_uri"])
    query = {"name": name, "version": unquote(version)}
    answer = server.json(f"{MLFLOW}/model-versions/get-download-uri", **query) if version else None
    if answer is None:
        raise Failed(f"{uri} names no version, or none that may be read")
    return str(answer["artifact_uri"])


# ------------------------------------------------------------------ the files


def files_of(server: Server, folder: str) -> Iterator[str]:
    """The paths of all files below a folder of the server, relative to it."""
    pending = [""]
    while pending:
        below = pending.pop()
        listed = server.json(FILES, path="/".join(part for part in (folder, below) if part))
        for entry in (listed or {}).get("files", ()):
            name = str(entry["path"]).rsplit("/", 1)[-1]
            if name in ("", ".", "..") or "\\" in name or "\0" in name:
                raise Failed(f"the server lists a file with the name {name!r}")
            path = f"{below}/{name}" if below else name
            if entry.get("is_dir"):
                pending.append(path)
            else:
                yield path


def fetch(server: Server, uri: str, target: Path) -> int:
    """Downloads the files of a URI and returns their number. Raises Failed if there are none."""
    folder, bucket = location_of(server, uri)
    count = 0
    for path in files_of(server, folder):
        if not server.fetch(f"{folder}/{path}", target / path, bucket):
            raise Failed(f"{folder}/{path} was removed meanwhile")
        count += 1
    if not count and server.fetch(folder, target / folder.rsplit("/", 1)[-1], bucket):
        count = 1
    if not count:
        raise Failed(f"there are no files at {folder!r}, or they may not be read")
    return count


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    uri, folder = arguments
    try:
        count = fetch(Server(os.environ), uri, Path(folder))
    except Failed as failed:
        print(f"{uri}: {failed}", file=sys.stderr)
        return 1
    print(f"{uri}: {count} files in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
