"""The Python code of README.md, of every page in docs and of docstrings runs; links lead somewhere.

A page that shows a subclass of a contract from `backsweep.testing` passes that contract.
"""

from __future__ import annotations

import doctest
import importlib
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from backsweep.testing import EncoderContract, SamplerContract

CONTRACTS = (SamplerContract, EncoderContract)
ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NEEDED = {
    "stable_baselines3": "stable_baselines3",
    "tianshou": "tianshou",
    "torchrl": "torchrl",
    "rllib": "ray.rllib",
    "ray": "ray",
}
"""The frameworks that pages are about; without one its page is not run."""
WITH_RAY = {"rllib", "ray"}
"""Pages that start Ray: parallel workers leave them and all other tests of Ray to one, as two clusters would mix."""
LINKED = [*PAGES, *sorted(ROOT.glob("*/README.md"))]
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]*)#?([^)\s]*)\)")
SOURCES = ROOT / "src"
DOCUMENTED = [
    ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCES.rglob("*.py"))
    if ">>> " in path.read_text()
]
"""Modules whose docstrings have examples."""
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=page.name,
            marks=[pytest.mark.xdist_group("ray"), pytest.mark.ray] if page.stem in WITH_RAY else [],
        )
        for page in PAGES
    ],
)
def test_the_code_on_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.stem in NEEDED:
        pytest.importorskip(NEEDED[page.stem], reason=f"{page.stem} is not installed: make test-integrations does that")
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    module = types.ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look their module up
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start(1))
        if match[1].startswith(">>>"):
            run_session(match[1], vars(module), page, line)
        else:
            # Blank lines in front put the right line numbers into an error.
            exec(compile("\n" * line + match[1], str(page), "exec"), vars(module))
    for thing in list(vars(module).values()):
        if isinstance(thing, type) and issubclass(thing, CONTRACTS) and thing not in CONTRACTS:
            run_contract(thing(), tmp_path)


def run_session(code: str, namespace: dict[str, Any], page: Path, line: int) -> None:
    """Run a block that shows prompts and answers."""
    session = doctest.DocTestParser().get_doctest(code, namespace, page.name, str(page), line)
    namespace_after = session.globs
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(
        session, clear_globs=False
    )
    assert result.failed == 0, f"{page.name}, line {line}: see the captured output"
    namespace.update(namespace_after)


def run_contract(contract: Any, folder: Path) -> None:
    for name in dir(contract):
        if name.startswith("test_"):
            test = getattr(contract, name)
            arguments = [folder / name] if "tmp_path" in test.__code__.co_varnames[: test.__code__.co_argcount] else []
            test(*arguments)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_examples_of_docstrings_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if ".integrations." in name:
        framework = next(NEEDED[part] for part in name.split(".") if part in NEEDED)
        pytest.importorskip(framework, reason=f"{framework} is not installed: make test-integrations does that")
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_examples_that_run_are_found() -> None:
    assert {"backsweep.replay.replay", "backsweep.agent.defaults", "backsweep.tasks.make"} <= set(DOCUMENTED)


def test_there_are_pages_with_code() -> None:
    with_code = [page.name for page in PAGES if BLOCK.search(page.read_text())]
    assert {"README.md", "write_a_sampler.md"} <= set(with_code)


def anchors(page: Path) -> set[str]:
    """Return the places of a page that links can name, which readers make of its headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for path, anchor in LINK.findall(page.read_text()):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {path}, which is not there"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links to {path}#{anchor}, of which there is no heading"


def test_the_diff_on_the_page_leads_to_the_example() -> None:
    page = (ROOT / "docs" / "frameworks" / "single_file.md").read_text()
    example = (ROOT / "examples" / "dqn_single_file.py").read_text().splitlines()
    (diff,) = re.findall(r"^```diff\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = diff.splitlines()
    assert len(lines) > 20
    for line in lines:
        assert (line[1:] in example) == (not line.startswith("-")), line


PACKAGES = sorted(path.parent.relative_to(ROOT / "src" / "backsweep") for path in (ROOT / "src").rglob("__init__.py"))
MAP = (ROOT / "docs" / "architecture.md").read_text()
DRAWING = (ROOT / "docs" / "images" / "architecture.svg").read_text()
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()


@pytest.mark.parametrize("package", [package for package in PACKAGES if package.parts], ids=str)
def test_every_package_is_on_the_map(package: Path) -> None:
    if len(package.parts) == 1 or (len(package.parts) == 2 and package.parts[0] in ("agent", "lab")):
        assert re.search(rf">{package.as_posix()}[:<]", DRAWING), f"{package} is not in the drawing"
    table = MAP.split("## Where things are")[1].split("\n## ")[0]
    assert re.search(rf"\b{package.parts[-1]}\b", table), f"{package} is not in the table"


def test_the_map_has_no_packages_that_are_gone() -> None:
    names = re.findall(r"^\| `([a-z_/]+)` \|", MAP, re.MULTILINE)
    assert len(names) > 15
    assert [name for name in names if not (ROOT / "src" / "backsweep" / name / "__init__.py").exists()] == []


def test_there_are_few_words_to_learn() -> None:
    words = re.findall(r"^\| ([a-z]+) \|", GLOSSARY, re.MULTILINE)
    assert 0 < len(words) == len(set(words)) <= 20
