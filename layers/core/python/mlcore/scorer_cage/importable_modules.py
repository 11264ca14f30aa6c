"""The modules that the code of a scorer can import: modules of the standard library that only
compute, packages that the server's operator allows, and a part of MLflow.

Those that the scorer's source names are imported before the process is sealed (gives up all
rights), because a sealed process can open no file. This list is a convenience and no boundary: a
scorer that reaches another module through an object gains nothing, because the kernel refuses what
such a module would do.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import re
import sys
from collections.abc import Sequence
from enum import StrEnum
from types import ModuleType
from typing import Any, Final

from mlcore import reserved_tags
from mlcore.scorer_cage import assessments, spans, traces
from mlcore.spans import names

_STANDARD: Final = """
    __future__ abc array ast base64 binascii bisect calendar cmath codecs collections
    collections.abc colorsys contextlib copy csv dataclasses datetime decimal difflib enum
    fractions functools hashlib heapq hmac html html.entities html.parser inspect io ipaddress
    itertools json json.decoder json.encoder keyword locale logging math numbers operator pprint
    random re secrets statistics string struct textwrap time timeit token tokenize traceback types
    typing unicodedata urllib urllib.parse uuid warnings weakref xml xml.etree
    xml.etree.ElementTree zlib
"""
STANDARD: Final = frozenset(_STANDARD.split())
"""Modules of the standard library that a scorer can import."""

_NEEDED_LATER: Final = (
    "_strptime",
    "encodings.ascii",
    "encodings.cp1252",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.utf_16",
    "encodings.utf_32",
    "encodings.utf_8_sig",
    "linecache",
)
"""Modules that functions of the standard library import when they are first called."""

_IMPORT: Final = re.compile(r"(?:\bfrom[ \t]+([\w.]+)[ \t]+)?\bimport[ \t]+\(?([\w., \t]+)")
_NAMED: Final = re.compile(r"([\w.]+)(?:[ \t]+as[ \t]+(\w+))?")
_ATTRIBUTE: Final = re.compile(r"(?<![\w.])(\w+)((?:\.\w+){1,3})")
_RUNS_A_PROGRAM: Final = re.compile(r"(^|\.)(__main__|conftest|setup)($|\.)")
_NUMPY: Final = """
    numpy._core.strings numpy.char numpy.fft numpy.lib.recfunctions numpy.linalg numpy.ma
    numpy.polynomial numpy.random numpy.rec
"""
_PANDAS: Final = """
    pandas.core.arrays.sparse.scipy_sparse pandas.core.methods.select pandas.core.methods.to_dict
    pandas.core.reshape.reshape pandas.io.formats.csvs pandas.io.formats.html
    pandas.io.formats.string pandas.io.formats.xml pandas.tseries.holiday
"""
_NEEDED_BY: Final = {
    "numpy": tuple(_NUMPY.split()),
    "pandas": (*_NUMPY.split(), *_PANDAS.split()),
}
"""Modules that packages import when their functions are first called."""

_JUDGES: Final = (
    "This scorer runs on the server without a network, so it cannot ask a model. Register a judge "
    "beside it, or run it with mlflow.genai.evaluate from a client."
)


class _JudgesModule(ModuleType):
    """``mlflow.genai.judges`` without the judges, which would need to call models."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError(f"mlflow.genai.judges.{name} is not available here. {_JUDGES}")


class CategoricalRating(StrEnum):
    """MLflow's ratings."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


_ENTITIES: Final = {
    name: getattr(module, name)
    for module, listed in (
        (
            assessments,
            "Assessment AssessmentError AssessmentSource AssessmentSourceType Expectation Feedback",
        ),
        (spans, "Link Span SpanEvent SpanStatus SpanStatusCode SpanType"),
        (traces, "Trace TraceData TraceInfo TraceLocation TraceState"),
    )
    for name in listed.split()
}
_MLFLOW: Final[dict[str, dict[str, Any]]] = {
    "mlflow": {},
    "mlflow.entities": _ENTITIES,
    "mlflow.entities.assessment": _ENTITIES,
    "mlflow.entities.assessment_error": _ENTITIES,
    "mlflow.entities.assessment_source": _ENTITIES,
    "mlflow.entities.span": _ENTITIES,
    "mlflow.entities.trace": _ENTITIES,
    "mlflow.entities.trace_info": _ENTITIES,
    "mlflow.entities.trace_state": _ENTITIES,
    "mlflow.exceptions": {"MlflowException": assessments.MlflowException},
    "mlflow.genai": {},
    "mlflow.genai.judges": {"CategoricalRating": CategoricalRating},
    "mlflow.tracing": {},
    "mlflow.tracing.constant": {
        "SpanAttributeKey": type(
            "SpanAttributeKey",
            (),
            {
                "REQUEST_ID": names.SPAN_TRACE_ID,
                "INPUTS": reserved_tags.SPAN_INPUTS,
                "OUTPUTS": reserved_tags.SPAN_OUTPUTS,
                "SPAN_TYPE": reserved_tags.SPAN_TYPE,
                "CHAT_USAGE": reserved_tags.SPAN_TOKEN_USAGE,
                "CHAT_TOOLS": names.SPAN_TOOLS,
                "MODEL": reserved_tags.SPAN_MODEL,
                "LLM_COST": names.SPAN_COST,
            },
        ),
        "TraceMetadataKey": type(
            "TraceMetadataKey",
            (),
            {
                "TOKEN_USAGE": reserved_tags.TRACE_TOKEN_USAGE,
                "COST": reserved_tags.TRACE_COST,
                "TRACE_SESSION": reserved_tags.TRACE_SESSION,
                "TRACE_USER": reserved_tags.TRACE_USER,
                "SOURCE_RUN": reserved_tags.SOURCE_RUN,
            },
        ),
    },
}
"""The modules of MLflow that a scorer can import, with their contents."""

_MAX_TEXT: Final = 1000
_failures: Final[dict[str, str]] = {}
"""The reasons why modules could not be imported, by name of the module."""


def prepare(source: str, packages: Sequence[str]) -> dict[str, Any]:
    """Imports the allowed modules that the scorer's source imports, and forbids the scorer's code
    to import others from now on. Returns the globals in which the scorer's function runs: the names
    that MLflow gives to such functions.

    Args:
        packages: names of installed packages that the scorer may import.
    """
    for name in _NEEDED_LATER:
        importlib.import_module(name)
    for name in _imported(source):
        if _is_allowed(name, packages) and not _RUNS_A_PROGRAM.search(name):
            _import(name)
    _install_mlflow()
    _restrict_imports(packages)
    sys.modules[SCORER_MODULE] = ModuleType(SCORER_MODULE)  # dataclasses need their module here
    common = ("Feedback", "Assessment", "AssessmentSource", "AssessmentError", "Trace")
    return {
        "mlflow": sys.modules["mlflow"],
        "AssessmentSourceType": assessments.AssessmentSourceType,
        "CategoricalRating": CategoricalRating,
        **{name: _ENTITIES[name] for name in common},
    }


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception as error:  # a package can raise anything when it is imported
        _failures[name] = _text(error)  # the name may be an attribute; the scorer's import decides
        return
    for needed in _NEEDED_BY.get(name, ()):
        with contextlib.suppress(ImportError):
            importlib.import_module(needed)


def _text(error: Exception) -> str:
    try:
        return str(error)[:_MAX_TEXT]
    except Exception:  # an error of a class of the package
        return type(error).__name__


def _imported(source: str) -> list[str]:
    """Returns the names of modules that a source may import: modules, names in ``from … import``
    (which may be modules), and attributes of modules (``np.linalg``), which packages may import
    when they are first used. The source is searched and not parsed, because this process is not
    sealed yet."""
    modules: list[str] = []
    aliases: dict[str, str] = {}
    for package, imported in _IMPORT.findall(source):
        prefix = f"{package}." if package else ""
        modules += [package] if package else []
        for name, alias in _NAMED.findall(imported):
            modules.append(prefix + name)
            aliases[alias or name] = prefix + name
    for alias, attributes in _ATTRIBUTE.findall(source):
        if alias in aliases:
            parts = attributes.split(".")[1:]
            modules += [
                ".".join((aliases[alias], *parts[:length])) for length in range(1, len(parts) + 1)
            ]
    return list(dict.fromkeys(modules))


def _is_allowed(name: str, packages: Sequence[str]) -> bool:
    return name in STANDARD or name in _NEEDED_LATER or name.partition(".")[0] in packages


def _install_mlflow() -> None:
    for name, contents in _MLFLOW.items():
        made = _JudgesModule(name) if name == "mlflow.genai.judges" else ModuleType(name)
        made.__dict__.update(contents, __path__=[])
        sys.modules[name] = made
        package, _, last = name.rpartition(".")
        if package:
            setattr(sys.modules[package], last, made)


def _restrict_imports(packages: Sequence[str]) -> None:
    """Makes imports of modules that are not allowed fail in the scorer's code, with a message that
    lists the allowed packages."""
    import_before = builtins.__import__

    def restricted(
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Any = (),
        level: int = 0,
    ) -> Any:
        of_scorer = isinstance(globals, dict) and globals.get("__name__") == SCORER_MODULE
        if of_scorer and not (_is_allowed(name, packages) or name in _MLFLOW):
            others = f", and {', '.join(packages)}" if packages else ""
            raise ImportError(
                f"A scorer on this server cannot import '{name}'. It can import modules of the "
                f"standard library that only compute{others}.",
                name=name,
            )
        try:
            return import_before(name, globals, locals, fromlist, level)
        except Exception as error:
            if not of_scorer or name not in _failures:
                raise
            # The sealed process can open no file, so only the error before sealing tells the cause.
            raise ImportError(_failures[name], name=name) from error

    builtins.__import__ = restricted


SCORER_MODULE: Final = "scorer"
"""``__name__`` in the code of a scorer."""
