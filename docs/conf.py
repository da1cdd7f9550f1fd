"""The documentation site: `make docs` builds it from these pages and from the code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests"))

from oracles import pages  # noqa: E402 (found by the line above)

project = "longpole"
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
html_theme = "furo"
html_title = "longpole"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["generated/extra"]
exclude_patterns = ["generated/extra"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types of polars, numpy and the standard library
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
numpydoc_show_class_members = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
suppress_warnings = ["misc.highlighting_failure"]  # mermaid, which GitHub draws
default_role = "code"  # names in docstrings
highlight_language = "none"  # most blocks are commands and what they print


def write_generated_pages(_app: Sphinx) -> None:
    """Write the pages that follow from the code, before Sphinx looks for pages."""
    folder = DOCS / "generated"
    schemas = folder / "extra/generated/schemas"
    schemas.mkdir(parents=True, exist_ok=True)
    texts = {folder / name: made() for name, made in pages.GENERATED.items()}
    texts |= {schemas / name: text for name, text in pages.schema_files().items()}
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")


def write_llms_txt(app: Sphinx, failure: Exception | None) -> None:
    """List every page with its title, for programs that read the site."""
    if failure is not None or app.builder.name != "html":
        return
    titles = {name: node.astext() for name, node in app.env.titles.items()}
    links = "".join(f"- [{titles[name]}]({name}.html)\n" for name in sorted(titles))
    head = (
        "# longpole\n\n> Finds what a GPU program waits for, and shows the events that prove it.\n"
    )
    start = "Start with [longpole for agents](generated/agents.html)."
    text = f"{head}\n{start}\n\n## Pages\n\n{links}"
    (Path(app.outdir) / "llms.txt").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect the two."""
    app.connect("config-inited", lambda app, _config: write_generated_pages(app))
    app.connect("build-finished", write_llms_txt)
