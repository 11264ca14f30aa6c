"""Requests to the skill registry, in an order in which each finds what it needs; their answers by
MLflow 3.18.0 are in ``recorded/skills_3_18_0.json`` (``skill_recording`` writes it)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.contract import skill_archives as archives
from tests.contract.skill_requests import (
    DIGEST,
    GIT,
    ICON,
    Call,
    get,
    send,
    uploaded,
    version,
)
from tests.contract.skill_searches import searches


def _creations() -> Iterator[Call]:
    yield send("POST", "", {"name": "code-review"})
    yield send("POST", "", {"name": "code-review"})
    yield send("POST", "", {"name": "code-review", "organization": "acme", "description": "D"})
    yield send("POST", "", {"name": "x", "icons": [{**ICON, "y": 1, "mimeType": " Image/PNG "}]})
    names = ("", "Bad_Name", "a--b", "-a", "a-", "a" * 64, "a" * 65, "a\n", "é", "a/b", "@a", 7)
    for name in (*names, None, [], {}, True):
        yield send("POST", "", {"name": name})
    for organization in ("A", "a.b-c", "a..b", "a.", "o" * 65, "a/b", "a\n", None, 7, "a b"):
        yield send("POST", "", {"name": "of-org", "organization": organization})
    yield send("POST", "", {})
    yield send("POST", "", {"name": "n", "extra": 1, "Name": 2})
    yield send("POST", "", {"name": "n", "description": 7})
    for icons in (
        *(7, [7], [{}], [{"src": 7}], [{"src": "http://8.8.8.8/i"}], [{"src": "https://"}]),
        *([{"src": "https://localhost/i.png"}], [{**ICON, "mimeType": "text/html"}]),
        *([{**ICON, "sizes": "x"}], [{**ICON, "theme": 1}], [ICON] * 101, [{"src": "ftp://a"}]),
    ):
        yield send("POST", "", {"name": "icons", "icons": icons})
    yield send("POST", "", {"name": "icons", "icons": [{**ICON, "theme": None, "more": None}]})
    yield send("POST", "", {"name": "none", "icons": []})
    yield Call("POST", "")
    yield Call("POST", "", b"")
    yield Call("POST", "", b"{")
    yield Call("POST", "", b"[]")
    yield Call("POST", "", b"null")
    yield Call("POST", "", b'"x"')
    yield Call("POST", "", b'{"name": "plain"}', "text/plain")
    yield Call("POST", "", b'{"name": "charset"}', "application/json; charset=utf-8")
    yield Call("POST", "", b'{"name": "vendor"}', "application/vnd.api+json")
    yield Call("POST", "", b'{"name": "twice", "name": "double"}')


def _reads_and_changes() -> Iterator[Call]:
    for skill in ("code-review", "@acme/code-review", "%40acme%2Fcode-review", "nope"):
        yield get(f"/{skill}")
        yield get(f"/{skill}/versions")
        yield get(f"/{skill}/aliases/latest")
        yield get(f"/{skill}/aliases/prod")
    for path in ("/Bad_Name", "/@acme", "/@/x", "/@A/x", "/a--b", "/x/", "/a/b/c", "/%20"):
        yield get(path)
    yield get(f"/{'a' * 65}")
    for path in ("/@acme/versions", "/@acme/tags"):
        yield get(path)
        yield send("POST", path, {"key": "k", "value": "v"})
    for fields in (
        *({"description": "new"}, {"description": None}, {}, {"icons": []}, {"icons": None}),
        *({"icons": [ICON]}, {"description": 7}, {"name": "y"}, {"icons": [ICON, ICON]}),
    ):
        yield send("PATCH", "/code-review", fields)
        yield send("PATCH", "/@acme/code-review", fields)
    yield send("PATCH", "/nope", {"description": "d"})
    yield send("PATCH", "/Nope", {"description": "d"})
    yield send("PATCH", "/@acme", {"description": 7})
    yield Call("PATCH", "/code-review")
    yield get("/code-review")


def _tags() -> Iterator[Call]:
    for skill in ("code-review", "@acme/code-review"):
        yield send("POST", f"/{skill}/tags", {"key": "team", "value": "core"})
        yield send("POST", f"/{skill}/tags", {"key": "team", "value": ""})
        yield send("POST", f"/{skill}/tags", {"key": "Team", "value": "é"})
        yield send("POST", f"/{skill}/tags", {"key": "a/b.c d", "value": "v"})
        yield get(f"/{skill}")
        yield send("DELETE", f"/{skill}/tags/a/b.c%20d")
        yield send("DELETE", f"/{skill}/tags/Team")
        yield send("DELETE", f"/{skill}/tags/Team")
    for key in ("", "..", "a/../b", "/a", "a//b", "a\n", "k" * 250, "k" * 251, "a%b", "é", None, 7):
        yield send("POST", "/code-review/tags", {"key": key, "value": "v"})
    yield send("POST", "/code-review/tags", {"key": "big", "value": "v" * 100_000})
    yield send("POST", "/code-review/tags", {"key": "big", "value": "v" * 100_001})
    for value in (None, 7, [], True):
        yield send("POST", "/code-review/tags", {"key": "k", "value": value})
    yield send("POST", "/code-review/tags", {"key": "k"})
    yield send("POST", "/code-review/tags", {"value": "k"})
    yield send("POST", "/code-review/tags", {"key": "k", "value": "v", "more": 1})
    yield send("POST", "/nope/tags", {"key": "k", "value": "v"})
    yield send("DELETE", "/nope/tags/k")
    yield send("DELETE", "/code-review/tags/..%2Fx")
    yield send("DELETE", "/code-review/tags/")


def _remote_versions() -> Iterator[Call]:
    yield version("life")
    yield version("life", status="draft", ref="main", subpath=" a//b/ ", digest=DIGEST)
    yield version("@acme/life", name="life", organization="acme")
    yield version("life", name="other")
    yield version("life", organization="acme")
    yield version("@acme/life", organization="other")
    yield version("life", name=None)
    for status in ("deprecated", "deleted", "bogus", "", None, 7, "Active"):
        yield version("life", status=status)
    for digest in ("", "a", "A" * 64, "g" * 64, DIGEST + "\n", 7):
        yield version("life", digest=digest)
    for source in (
        *("git://x.org/a", "git@host:org/repo.git", "ssh://git@host/r.git", "https://x.org/a.git/"),
        *("https://x.org/a.zip", "https://x.org/a.zip?download=1", "http://x.org/a.zip"),
        *("oci://ghcr.io/acme/skill:1", "oci://", "oci://UPPER/X", "oci://a//b", "oci://a:!"),
        *("oci://a@sha256:1", f"oci://a@sha256:{DIGEST}", "oci://localhost:5000/a", "oci://a:1/b"),
        *("https://x.org/s", "/etc/passwd", "./a", "C:\\x", "C:/x.git", "file:///x.git", "x.git"),
        *("mlflow-artifacts:/skills/x/y", " MLFLOW-artifacts:/x", "runs:/x/y", "models:/m/1", ""),
        *(" ", "ftp://x.org/a.zip", "https://u:p@x.org/a.git", "https://u@x.org/a.git"),
        *("ssh://u:p@x.org/a.git", "https://u@x.org/a.zip", "https://x.org/a.zip?Token=1"),
        *("https://x.org/a.zip?X-Amz-Signature=1", "-https://x.org/a.git", "https://x y.org/a.git"),
        *("https://x.org/" + "a" * 2050 + ".git", "https://x.org/a\n.git", "OCI://x/y", "x:y.git"),
        *("https://x.org/a.zip#sig", "git://u:p@h/x", "https://[x/a.git", 7, [], "a.b:c.git"),
        *("https://u:p@x.org/s", "https://x.org/s?token=abc", "u:tok@host.x:a/b"),
    ):
        yield version("sources", source=source)
    for typed_source, source_type in (
        *(("https://x.org/a.git", "zip"), ("https://x.org/s", "git"), ("https://x.org/s", "zip")),
        *(("ghcr.io/a/b:v1", "oci"), ("oci://x/y", "git"), ("oci://x/y", "oci"), ("x", "oci")),
        *(("git://x/y", "zip"), ("https://x.org/a.git", "oci"), ("oci://", "oci"), ("", "oci")),
        *((GIT, "svn"), (GIT, "mlflow"), (GIT, "GIT"), (GIT, ""), (GIT, 7), ("/x", "git")),
        *(("-x", "oci"), ("a b", "oci"), ("a" * 2049, "oci"), (" https://x.org/s ", "git")),
    ):
        yield version("sources", source=typed_source, source_type=source_type)
    yield version("sources", source="https://x.org/a.zip", ref="main")
    yield version("sources", source="https://x.org/a", source_type="zip", ref="main")
    for ref in ("", "-x", "a b", "a" * 2049, "v1.0/x", 7, None):
        yield version("sources", ref=ref)
    for subpath in (
        *("", " ", "/abs", "a/../b", ".", "a\\b", "nul", "a:b", "a.", "a*", "x" * 256, 7, None),
        *("/".join("d" * 129), "/".join(["n" * 200] * 11), "a/./b", "é"),
    ):
        yield version("sources", subpath=subpath)
    yield send("POST", "/life/versions", {})
    yield send("POST", "/life/versions", {"name": "life", "source": None})
    yield send("POST", "/life/versions", {"source": GIT, "created_by": "me"})
    yield send("POST", "/Life/versions", {"source": GIT})
    yield send("POST", "/@acme/versions", {"source": GIT})
    for content in (b"", b"{", b"[]", b"null", b"7"):
        yield Call("POST", "/life/versions", content)
    yield Call("POST", "/life/versions", b"{}", "text/plain")
    yield Call("POST", "/life/versions", b"{}", None)
    yield get("/sources/versions?max_results=1000")


def _lifecycle() -> Iterator[Call]:
    for number in ("1", "01", "1.0", "2", "3", "0", "-1", "x", "99999999999", "1.5", "2147483648"):
        yield get(f"/life/versions/{number}")
    yield send("POST", "/life/aliases", {"alias": "prod", "version": 1})
    yield send("POST", "/life/aliases", {"alias": "Prod", "version": "1"})
    yield send("POST", "/life/aliases", {"alias": "prod", "version": 2})
    for alias in ("", "a b", "a" * 255, "a" * 256, "latest", "LATEST", "v1", "V2", "v", "é", 7):
        yield send("POST", "/life/aliases", {"alias": alias, "version": 1})
    for wanted in (99, 0, -1, "x", 1.5, 1.0, True, None, 2**31, "1.0", [], " 1 "):
        yield send("POST", "/life/aliases", {"alias": "other", "version": wanted})
    yield send("POST", "/life/aliases", {"alias": "other"})
    yield send("POST", "/life/aliases", {"alias": "other", "version": 1, "more": 1})
    yield send("POST", "/nope/aliases", {"alias": "other", "version": 1})
    for alias in ("prod", "Prod", "PROD", "latest", "Latest", "v1", "nope", "a%20b"):
        yield get(f"/life/aliases/{alias}")
    yield get("/life")
    yield get("/life/versions/2")
    yield send("POST", "/life/versions/1/tags", {"key": "vt", "value": "1"})
    yield send("POST", "/life/versions/1/tags", {"key": "a/b", "value": ""})
    yield send("POST", "/life/versions/99/tags", {"key": "vt", "value": "1"})
    yield send("POST", "/life/versions/0/tags", {"key": "vt", "value": "1"})
    yield send("POST", "/life/versions/x/tags", {"key": 7})
    yield send("DELETE", "/life/versions/1/tags/a/b")
    yield send("DELETE", "/life/versions/1/tags/a/b")
    yield send("DELETE", "/life/versions/99/tags/a")
    yield get("/life/versions/1")
    for status in ("deleted", "bogus", None, 7, "active", "", "deprecated", "draft", "active"):
        yield send("PATCH", "/life/versions/1", {"status": status})
    yield send("PATCH", "/life/versions/1", {})
    yield send("PATCH", "/life/versions/1", {"more": 1})
    yield send("PATCH", "/life/versions/99", {})
    yield send("PATCH", "/life/versions/99", {"status": None})
    yield send("PATCH", "/life/versions/0", {})
    yield send("DELETE", "/life/versions/1")
    yield send("PATCH", "/life/versions/1", {"status": "deprecated"})
    yield get("/life")
    yield send("DELETE", "/life/versions/1")
    yield send("DELETE", "/life/versions/1")
    yield get("/life/versions/1")
    yield send("PATCH", "/life/versions/1", {"status": "active"})
    yield send("POST", "/life/aliases", {"alias": "gone", "version": 1})
    yield get("/life/aliases/Prod")
    yield get("/life/versions")
    yield send("PATCH", "/life/versions/2", {"status": "deleted"})
    yield get("/life")
    yield get("/life/aliases/latest")
    yield get("/life/aliases/prod")
    yield version("life")
    yield get("/life")
    for alias in ("latest", "v1", "a%20b", "nope"):
        yield send("DELETE", f"/life/aliases/{alias}")
    yield send("POST", "/life/aliases", {"alias": "prod", "version": 3})
    yield send("DELETE", "/life/aliases/prod")
    yield send("DELETE", "/life")
    yield send("DELETE", "/life")
    yield get("/life/versions/3")
    yield version("life")
    yield get("/life")


def _uploads() -> Iterator[Call]:
    good = archives.archive(archives.FILES)
    yield uploaded("up", good)
    yield uploaded("up", good, digest=archives.DIGEST, status="draft", name="up")
    yield uploaded("@acme/up", good, organization="acme")
    yield uploaded("up", good, digest="b" * 64)
    yield uploaded("up", good, name="other")
    yield uploaded("up", good, source=GIT)
    yield uploaded("up", good, status="deprecated")
    yield uploaded("up", good, extra=1)
    for field in ("source_type", "ref", "subpath"):
        yield uploaded("up", good, **{field: "git"})
    yield uploaded("up", good, source_type="mlflow")
    yield uploaded("up", b"")
    for make in archives.HOSTILE.values():
        yield uploaded("hostile", make())
    metadata = archives.part("metadata", b"{}")
    content = archives.part("content", good, "c")
    for parts in (
        *((metadata,), (content,), (content, metadata), (metadata, metadata), ()),
        *((metadata, content, content), (metadata, archives.part("content", good))),
        *((archives.part("metadata", b"{"), content), (archives.part("metadata", b"[]"), content)),
        *((archives.part("metadata", b"", "m.json"), content), (metadata, content, metadata)),
        *((archives.part("metadata", b"{}", "m.json"), content),),
        *((archives.part("metadata", b"null"), content), (archives.part("other", b"x"), content)),
        *((archives.part("metadata", b" " * 1_048_577), content),),
        *((archives.part("metadata", b" " * 1_048_577, "m"), content),),
    ):
        yield Call("POST", "/parts/versions", archives.body(*parts), archives.MULTIPART)
    yield Call("POST", "/parts/versions", archives.body(metadata), "multipart/form-data")
    yield get("/up")
    yield get("/hostile/versions")
    yield send("DELETE", "/up")
    yield get("/up/versions/1")


def _bulk() -> Iterator[Call]:
    def bulk(*skills: Any, **more: Any) -> Call:
        return send("POST", "/bulk-register", {"skills": list(skills), **more})

    def skill(name: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "source": GIT, "digest": DIGEST, **more}

    yield bulk(skill("b2", subpath="two"), skill("b1", subpath="one"))
    yield bulk(skill("b2", subpath="two"), skill("b1", subpath="other"))
    yield bulk(skill("b1", subpath="one"), skill("b3"), organization="acme")
    yield bulk(skill("b1", subpath=" one "), status="draft")
    yield send("PATCH", "/b1/versions/1", {"status": "deprecated"})
    yield bulk(skill("b1", subpath="one"))
    yield bulk(skill("b1", subpath="one", status="draft"))
    yield send("DELETE", "/b1/versions/1")
    yield bulk(skill("b1", subpath="one", status="draft"))
    yield bulk(skill("b1", ref="main"), skill("b3", ref="main"))
    yield bulk(skill("b1", ref="main"), skill("b3", ref="dev"))
    yield bulk(skill("b1"), skill("b3", source="https://x.org/b.git"))
    yield bulk(skill("b1"), skill("b3", status="draft"))
    yield bulk(skill("b4"), skill("b4"))
    yield bulk(skill("b4", source="https://x.org/b.zip"))
    yield bulk(skill("b4", digest=None))
    yield bulk(skill("b4", digest="x"))
    yield bulk(skill("b4", source=None))
    yield bulk(skill("b4", source="/etc"))
    yield bulk(skill("b4", status="deleted"))
    yield bulk(skill("b4", source_type="oci"))
    yield bulk(skill("b4", source_type="mlflow"))
    yield bulk(skill("b4", more=1), 7, {"name": 7})
    yield bulk(skill("Bad_Name"))
    yield bulk(skill("b5"), skill("Bad_Name"))
    yield bulk(skill("b4"), organization="Bad_")
    yield bulk()
    yield bulk(*[skill(f"n{number}") for number in range(501)])
    yield send("POST", "/bulk-register", {"skills": None})
    yield send("POST", "/bulk-register", {})
    yield send("POST", "/bulk-register", {"skills": [skill("b4")], "more": 1})
    yield get("/b4")
    yield get("/b5")
    yield send("POST", "", {"name": "bulk-register"})
    yield get("/bulk-register")
    yield send("PATCH", "/bulk-register", {"description": "a legal name"})
    yield bulk(*[skill(f"many-{number}", subpath=f"s{number}") for number in range(120)])
    yield get("/many-119/versions/1")


def _others() -> Iterator[Call]:
    yield send("PUT", "/code-review", {})
    yield send("POST", "/code-review", {})
    yield get("/code-review/unknown")
    yield send("DELETE", "")
    yield send("DELETE", "/code-review/aliases/")
    yield send("DELETE", "/nope")
    yield send("DELETE", "/Nope")
    yield send("DELETE", "/@acme/code-review")
    yield get("/@acme/code-review")


def calls() -> list[Call]:
    return [
        *_creations(),
        *_reads_and_changes(),
        *_tags(),
        *_remote_versions(),
        *_lifecycle(),
        *_uploads(),
        *_bulk(),
        *searches(),
        *_others(),
    ]


def plain(status: int, body: Any) -> list[Any]:
    """What of an answer is compared: without times, tokens and the order of sets."""
    if not isinstance(body, dict):
        return [status, None]
    body = {key: value for key, value in body.items() if key not in ("sqlstate", "error_class")}
    text = json.dumps(_ordered(body), sort_keys=True, ensure_ascii=False)
    text = re.sub(r"\b1[0-9]{12}\b", "0", text)
    text = re.sub(r"/[0-9a-f]{32}\b", "/<token>", text)
    text = re.sub(r'"next_page_token": "[^"]+"', '"next_page_token": "<token>"', text)
    text = re.sub(r"\{('[a-z_]+'(?:, '[a-z_]+')*)\}", _sorted_set, text)
    text = re.sub(r"(is not a readable tar archive|Archive is malformed): [^\"]*", r"\1", text)
    text = text.replace("Archive is malformed", "'content.tar.gz' is not a readable tar archive")
    text = re.sub(r"(for CreateSkillVersionRequest)[^\"]*", r"\1", text)
    return [status, json.loads(text)]


def _sorted_set(match: re.Match[str]) -> str:
    return "{" + ", ".join(sorted(match[1].split(", "))) + "}"


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        aliases = value.get("aliases")
        if isinstance(aliases, list):
            value = {**value, "aliases": sorted(aliases, key=str)}
        return {key: _ordered(part) for key, part in value.items()}
    if isinstance(value, str) and len(value) > 600:
        return f"{value[:200]} … {len(value)} characters"
    return [_ordered(part) for part in value] if isinstance(value, list) else value
