"""Writes the files of a catalog, loads it, and asks for it as API Gateway would; knows paths and no
rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import catalog.app
import catalog_loader.app
from mlcore.catalog.entry import CatalogEntry
from tests.contract.api import Answer

MODELS = "/api/model_catalog/v1alpha1"
SERVERS = "/api/mcp_catalog/v1alpha1"

SOURCES = """
model_catalogs:
  - id: open
    name: Open models
    type: yaml
    labels: [Open, null, ""]
    properties: {yamlCatalogPath: open.yaml}
  - id: lab
    name: Lab
    type: yaml
    properties: {yamlCatalogPath: /mounted/once/lab.yaml}
    includedModels: ["lab/*"]
    excludedModels: ["*-DRAFT"]
  - {id: off, name: Switched off, type: yaml, enabled: false}
mcp_catalogs:
  - id: tools
    name: Tools
    type: yaml
    labels: [Open]
    properties: {yamlCatalogPath: servers.yaml}
labels:
  - {name: Open, displayName: Open to all, priority: "2"}
  - {name: null, displayName: Others}
namedQueries:
  fast:
    filters: {artifacts.ttft_p90.double_value: {operator: "<=", value: min}}
  remote:
    assetType: mcp_servers
    filters:
      deploymentMode: {operator: "=", value: remote}
      tags: {operator: IN, value: [git, web]}
"""


def performance(latency: float, rate: float, hardware: str, count: int) -> str:
    return (
        "{artifactType: metrics-artifact, metricsType: performance-metrics, customProperties: {"
        f"ttft_p90: {{metadataType: MetadataDoubleValue, double_value: {latency}}}, "
        f"requests_per_second: {{metadataType: MetadataDoubleValue, double_value: {rate}}}, "
        f"hardware_type: {{metadataType: MetadataStringValue, string_value: {hardware}}}, "
        f'hardware_count: {{metadataType: MetadataIntValue, int_value: "{count}"}}}}}}'
    )


OPEN = f"""
source: Somebody
models:
  - name: org/Alpha
    description: First of all
    provider: Org
    license: apache-2.0
    language: [en, de]
    tasks: [text-generation]
    createTimeSinceEpoch: "1700000000000"
    customProperties:
      size: {{metadataType: MetadataStringValue, string_value: 7B}}
      layers: {{metadataType: MetadataIntValue, int_value: "32"}}
    artifacts:
      - {{uri: "oci://registry/alpha:1", createTimeSinceEpoch: 1700000000000}}
      - {performance(80, 4, "H100", 1)}
      - {performance(50, 8, "H100", 2)}
      - {performance(300, 2, "A10", 1)}
      - artifactType: metrics-artifact
        metricsType: accuracy-metrics
        customProperties:
          overall_average: {{metadataType: MetadataDoubleValue, double_value: 61.5}}
  - name: org/beta
    provider: Other
    license: mit
    language: [fr, null]
    lastUpdateTimeSinceEpoch: ""
    unknown: {{a: [1]}}
  - name: gamma
    artifacts:
      - {performance(60, 1, "A10", 4)}
"""
LAB = "models: [{name: lab/one}, {name: lab/two-draft}, {name: elsewhere/three}]\n"
TOOLS = """
mcp_servers:
  - name: forge
    provider: Org
    version: 1.2.0
    license: Own words
    logo: https://forge.example/logo.png
    deploymentMode: remote
    transports: [http]
    tags: [git]
    endpoints: {http: "https://forge.example/mcp"}
    securityIndicators: {sast: true, verifiedSource: false}
    tools:
      - name: search
        description: Looks
        accessType: read_only
        parameters: [{name: q, type: string}]
      - {name: delete, accessType: destructive}
      - {name: count, accessType: null}
  - {name: files, deploymentMode: local, tags: [disk]}
  - {name: disk, logo: "data:image/png;base64,iVBORw0KGgo="}
  - {name: script, logo: "javascript:alert(1)"}
"""
FILES = {"sources.yaml": SOURCES, "open.yaml": OPEN, "lab.yaml": LAB, "servers.yaml": TOOLS}


def form(config: str, data: str = "") -> str:
    """The body of a preview, with the boundary ``b``."""
    parts = [("config", config), *([("catalogData", data)] if data else [])]
    lines = [
        f'--b\r\nContent-Disposition: form-data; name="{name}"; filename="x"\r\n\r\n{text}\r\n'
        for name, text in parts
    ]
    return "".join([*lines, "--b--\r\n"])


class CatalogApi:
    """``ask`` answers whatever comes; ``get`` insists on success and gives the body."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.headers: dict[str, str] = {}
        self.entries: list[CatalogEntry] = []
        """What was loaded, where a test asks for it."""

    def write(self, **files: str) -> None:
        """Files by their names without ``.yaml``."""
        for name, text in files.items():
            (self._folder / f"{name}.yaml").write_text(text)

    def load(self) -> dict[str, Any]:
        report: dict[str, Any] = catalog_loader.app.handler({}, None)
        return report

    def ask(
        self, method: str, path: str, content: str | None = None, form: str = "", **query: Any
    ) -> Answer:
        path = path if path.startswith("/") else f"{MODELS}/{path}"
        kind = f"multipart/form-data; boundary={form}" if form else "application/json"
        event = {
            "version": "2.0",
            "rawPath": path,
            "rawQueryString": urlencode(query, doseq=True),
            "headers": {"host": "localhost", "content-type": kind, **self.headers},
            "requestContext": {"http": {"method": method}, "requestId": "test"},
            "isBase64Encoded": False,
            **({} if content is None else {"body": content}),
        }
        loader = path.endswith(("/sources/preview", "/sources/reload"))
        handler = catalog_loader.app.handler if loader else catalog.app.handler
        answered = handler(event, None)
        text = answered["body"]
        body = json.loads(text) if text.startswith("{") else {}
        return Answer(answered["statusCode"], body, len(text), answered.get("headers") or {})

    def get(self, path: str, **query: Any) -> Any:
        answer = self.ask("GET", path, **query)
        assert answer.status == 200, answer
        return answer.body

    def names(self, path: str, **query: Any) -> list[str]:
        return [item["name"] for item in self.get(path, **query)["items"]]

    def walk(self, size: int) -> list[dict[str, Any]]:
        """All models, page by page."""
        results: list[dict[str, Any]] = []
        token = ""
        while True:
            page = self.get("models", pageSize=size, nextPageToken=token)
            results += page["items"]
            token = page["nextPageToken"]
            if not token:
                return results
