"""Names of licenses: a source of the model catalog has an identifier (``apache-2.0``), and the
catalog shows a name (``Apache 2.0``). Kubeflow's server does the same, so that filters by license
find the same models on both."""

from __future__ import annotations

from typing import Any, Final

from catalog_loader import field_checks

_SHORT: Final = {
    "apache-2.0": "Apache 2.0",
    "bigscience-openrail-m": "BigScience OpenRAIL-M License",
    "bsd-2-clause": "BSD 2-Clause",
    "bsd-3-clause": "BSD 3-Clause",
    "gemma": "Gemma License",
    "gpl-2.0": "GPL 2.0",
    "gpl-3.0": "GPL 3.0",
    "lgpl-2.1": "LGPL 2.1",
    "lgpl-3.0": "LGPL 3.0",
    "llama2": "Llama 2 Community License",
    "llama3": "Llama 3 Community License",
    "llama3.1": "Llama 3.1 Community License",
    "llama3.2": "Llama 3.2 Community License",
    "llama3.3": "Llama 3.3 Community License",
    "llama4": "Llama 4 Community License",
    "mit": "MIT",
    "nvidia-open-model-license": "NVIDIA Open Model License",
    "openrail": "OpenRAIL License",
}
"""Names of licenses by identifier, as Kubeflow's server has chosen them."""

_CREATIVE_COMMONS: Final = {
    "cc-by": "Attribution",
    "cc-by-nc": "Attribution Non Commercial",
    "cc-by-nc-nd": "Attribution Non Commercial No Derivatives",
    "cc-by-nc-sa": "Attribution Non Commercial Share Alike",
    "cc-by-nd": "Attribution No Derivatives",
    "cc-by-sa": "Attribution Share Alike",
}
_EDITIONS: Final = {
    "1.0": "Generic",
    "2.0": "Generic",
    "2.5": "Generic",
    "3.0": "Unported",
    "4.0": "International",
}

_SPDX: Final = {
    "0bsd": "BSD Zero Clause License",
    "afl-3.0": "Academic Free License v3.0",
    "agpl-3.0": "GNU Affero General Public License v3.0",
    "agpl-3.0-only": "GNU Affero General Public License v3.0 only",
    "agpl-3.0-or-later": "GNU Affero General Public License v3.0 or later",
    "apache-1.1": "Apache License 1.1",
    "artistic-2.0": "Artistic License 2.0",
    "bsd-3-clause-clear": "BSD 3-Clause Clear License",
    "bsl-1.0": "Boost Software License 1.0",
    "busl-1.1": "Business Source License 1.1",
    "c-uda-1.0": "Computational Use of Data Agreement v1.0",
    "cc0-1.0": "Creative Commons Zero v1.0 Universal",
    "cdla-permissive-1.0": "Community Data License Agreement Permissive 1.0",
    "cdla-permissive-2.0": "Community Data License Agreement Permissive 2.0",
    "cdla-sharing-1.0": "Community Data License Agreement Sharing 1.0",
    "ecl-2.0": "Educational Community License v2.0",
    "epl-1.0": "Eclipse Public License 1.0",
    "epl-2.0": "Eclipse Public License 2.0",
    "etalab-2.0": "Etalab Open License 2.0",
    "eupl-1.1": "European Union Public License 1.1",
    "eupl-1.2": "European Union Public License 1.2",
    "gpl-2.0-only": "GNU General Public License v2.0 only",
    "gpl-2.0-or-later": "GNU General Public License v2.0 or later",
    "gpl-3.0-only": "GNU General Public License v3.0 only",
    "gpl-3.0-or-later": "GNU General Public License v3.0 or later",
    "isc": "ISC License",
    "lgpl-2.1-only": "GNU Lesser General Public License v2.1 only",
    "lgpl-2.1-or-later": "GNU Lesser General Public License v2.1 or later",
    "lgpl-3.0-only": "GNU Lesser General Public License v3.0 only",
    "lgpl-3.0-or-later": "GNU Lesser General Public License v3.0 or later",
    "lppl-1.3c": "LaTeX Project Public License v1.3c",
    "mpl-2.0": "Mozilla Public License 2.0",
    "ms-pl": "Microsoft Public License",
    "ms-rl": "Microsoft Reciprocal License",
    "ncsa": "University of Illinois/NCSA Open Source License",
    "odbl-1.0": "Open Data Commons Open Database License v1.0",
    "odc-by-1.0": "Open Data Commons Attribution License v1.0",
    "ofl-1.1": "SIL Open Font License 1.1",
    "osl-3.0": "Open Software License 3.0",
    "pddl-1.0": "Open Data Commons Public Domain Dedication & License 1.0",
    "postgresql": "PostgreSQL License",
    "python-2.0": "Python License 2.0",
    "unlicense": "The Unlicense",
    "wtfpl": "Do What The F*ck You Want To Public License",
    "zlib": "zlib License",
    **{
        f"{name}-{edition}": f"Creative Commons {words} {edition} {scope}"
        for name, words in _CREATIVE_COMMONS.items()
        for edition, scope in _EDITIONS.items()
    },
}
"""Names from the SPDX license list, for licenses that models and servers are published under."""


def license_name(where: str, value: Any) -> str:
    """Returns the full name of the license that a field of a catalog entry identifies; the field's
    text itself if it is not a known identifier."""
    text = field_checks.text(where, value).strip()
    identifier = text.lower()
    return _SHORT.get(identifier) or _SPDX.get(identifier) or text
