"""What the site needs beyond docs/: pages made of files elsewhere in the repository, and links that lead to them.

Documents are written to be read in the repository as well, so they link to README.md, to examples and to each other by
paths in the repository. On the site those files are pages with other names.
"""

from __future__ import annotations

import ast
import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent.parent
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
"""Documents at the root of the repository, and their pages on the site."""
REPORT = "report.html"
NO_REPORT = (
    "<!doctype html><title>No report yet</title><p>Run <code>make docs</code>, which puts the report here.</p>\n"
)
"""Stands where `make docs` puts the report: it takes longer to make than the site."""
FROM_DISK = "search/from_disk.js"
"""The script that mkdocs.yml names as a polyfill, so that it is loaded before the theme's own."""
LINK = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.MULTILINE | re.DOTALL)


def site_page(path: str) -> str | None:
    """Return the page that shows a file of the repository, or None."""
    if path == "README.md":
        return "index.md"
    if path in PAGES:
        return PAGES[path]
    if path.startswith("examples/") and path.endswith(".py"):
        return "examples.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return None


def source_of(page: str) -> str:
    """Return the path in the repository of the file that a page is made of."""
    for source, made in PAGES.items():
        if made == page:
            return source
    return f"docs/{page}"


def follow(text: str, page: str) -> str:
    """Return the text with links to files of the repository changed into links to pages; code stays as it is."""
    source = source_of(page)

    def replace(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        target = site_page(path)
        if target is None:
            raise PluginError(f"{source} links to {match[1]}, which is no page of the site")
        anchor = match[2] or ""
        if target == "examples.md":
            anchor = f"#{Path(path).stem}"
        if path == "README.md":
            anchor = ""  # the home page has the same message under other headings
        return f"]({posixpath.relpath(target, posixpath.dirname(page) or '.')}{anchor})"

    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(replace, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, LINK.sub(replace, text[end:])])


def examples_page() -> str:
    """Return a page with every example: what it shows, and its code."""
    parts = ["# Examples\n\nScripts to copy and change. Each runs as a test."]
    for path in sorted((ROOT / "examples").glob("*.py")):
        code = path.read_text()
        about = (ast.get_docstring(ast.parse(code)) or "").split("\n\n")[0]
        parts.append(f'## examples/{path.name} {{ #{path.stem} }}\n\n{about}\n\n??? example "The code"\n')
        parts.append("    ```python\n" + "".join(f"    {line}\n" for line in code.splitlines()) + "    ```")
    return "\n\n".join(parts) + "\n"


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made of files outside docs/."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    files.append(File.generated(config, "examples.md", content=examples_page()))
    files.append(File.generated(config, REPORT, content=NO_REPORT))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Make links between files of the repository links between pages."""
    return follow(markdown, page.file.src_uri)


def on_post_build(config: Any) -> None:
    """Let search work on pages opened from disk, where browsers neither fetch files nor start workers from them.

    The theme looks for the index in search_index.js then. The worker's code is put into a script that starts it.
    """
    site = Path(config.site_dir)
    index = (site / "search" / "search_index.json").read_text()
    (site / "search" / "search_index.js").write_text(f"var __index = {index}\n")
    (worker,) = site.glob("assets/javascripts/workers/search.*.js")
    (site / FROM_DISK).write_text(
        'if (location.protocol === "file:") {\n'
        f"  const code = new Blob([{json.dumps(worker.read_text())}], {{ type: 'text/javascript' }})\n"
        "  const PlainWorker = window.Worker\n"
        "  window.Worker = function () { return new PlainWorker(URL.createObjectURL(code)) }\n"
        "}\n"
    )
