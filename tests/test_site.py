"""The documentation as a site: it builds without warnings, works offline, and its reference has every public name."""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from collections.abc import Iterator
from pathlib import Path

import griffe
import pytest
import yaml

import backsweep
from site_building import ROOT

PUBLIC = (
    "backsweep",
    "backsweep.agent",
    "backsweep.agent.learner",
    "backsweep.inspection",
    "backsweep.integrations.ray",
    "backsweep.integrations.rllib",
    "backsweep.integrations.stable_baselines3",
    "backsweep.integrations.tianshou",
    "backsweep.integrations.torchrl",
    "backsweep.tasks",
    "backsweep.testing",
    "backsweep.view",
)
"""Modules all of whose names are public."""
ALSO = (
    "backsweep.agent.session.records.EvaluationRecord",
    "backsweep.agent.session.records.ReplayRecord",
    "backsweep.agent.session.records.TimingRecord",
    "backsweep.agent.session.records.TrainingRecord",
    "backsweep.encoding.Encoder",
    "backsweep.encoding.LiveEncoder",
    "backsweep.graph.GraphView",
    "backsweep.planning.planner.Renewal",
    "backsweep.samplers.Experience",
    "backsweep.samplers.LiveSampler",
    "backsweep.samplers.Sampler",
    "backsweep.samplers.SamplerState",
    "backsweep.snapshot.SnapshotError",
    "backsweep.types.JaxBatch",
    "backsweep.types.Picks",
    "backsweep.types.TorchBatch",
)
"""Names of other modules that users meet: what calls return or raise, and what to implement."""


@pytest.fixture(scope="module")
def package() -> griffe.Module:
    """The package as its source says it is; nothing is imported, so that no framework is needed."""
    loaded = griffe.load("backsweep", search_paths=[ROOT / "src"], docstring_parser="numpy", resolve_aliases=True)
    assert isinstance(loaded, griffe.Module)
    return loaded


def public_names(package: griffe.Module) -> Iterator[str]:
    for path in PUBLIC:
        module = package[path.removeprefix("backsweep").removeprefix(".")] if path != "backsweep" else package
        assert module.exports, f"{path} must say in __all__ what is public"
        yield from (f"{path}.{name}" for name in module.exports)
    yield from ALSO


def referenced() -> set[str]:
    pages = (ROOT / "docs" / "reference").glob("*.md")
    return {name for page in pages for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)}


def find(package: griffe.Module, name: str) -> griffe.Object:
    found = package[name.removeprefix("backsweep.")]
    return found.final_target if isinstance(found, griffe.Alias) else found


def test_the_reference_has_every_public_name(package: griffe.Module) -> None:
    names = set(public_names(package))
    assert len(names) > 60
    # What is public in two places is described in one.
    described = {find(package, name).canonical_path for name in referenced()}
    assert [name for name in sorted(names) if find(package, name).canonical_path not in described] == []
    assert sorted(referenced() - names) == [], "the reference names what is not public"


def test_every_public_name_and_its_methods_have_a_docstring(package: griffe.Module) -> None:
    missing = []
    for name in public_names(package):
        thing = find(package, name)
        if not thing.has_docstring:
            missing.append(name)
        if isinstance(thing, griffe.Class):
            missing += [f"{name}.{member}" for member in undocumented(thing)]
    assert missing == []


def undocumented(thing: griffe.Class) -> Iterator[str]:
    """Give the names of methods and fields that neither have a docstring nor are described by that of their class."""
    described = set()
    for section in thing.docstring.parsed if thing.docstring else ():
        if isinstance(section, (griffe.DocstringSectionParameters, griffe.DocstringSectionAttributes)):
            described |= {name.strip() for item in section.value for name in item.name.split(",")}
    if thing.path == "backsweep.types.TorchBatch":
        described = set(thing.members)  # those of Batch
    fields = {parameter.name for parameter in thing.parameters} if "dataclass" in thing.labels else set()
    for name, member in thing.all_members.items():
        if name.startswith("_") or member.has_docstring or name in described:
            continue
        if member.is_function or "property" in member.labels or (name in fields and member.is_attribute):
            yield name


def test_the_drawing_is_the_one_that_its_program_draws() -> None:
    program = runpy.run_path(str(ROOT / "docs" / "site" / "drawing.py"))
    assert program["SVG"].read_text() == program["drawing"](), "run python docs/site/drawing.py"


def test_every_name_of_the_reference_is_on_the_site(site: Path) -> None:
    pages = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    assert [name for name in referenced() if f'id="{name}"' not in pages] == []
    assert 'id="backsweep.Replay.sample"' in pages  # a method that Replay inherits


def test_parameters_described_together_have_their_own_types(site: Path) -> None:
    page = re.sub(r"<[^>]+>|\s+", "", (site / "reference" / "replay.html").read_text())
    assert "n_step(int,default:1)" in page
    assert "gamma(float,default:0.99)" in page


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loaded = re.compile(r"<(?:script|img|iframe|source)[^>]* src=\"(?:https?:)?//|<link[^>]* href=\"(?:https?:)?//")
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    assert [page.name for page in pages if loaded.search(page.read_text())] == []


def test_the_site_leads_to_the_report(site: Path) -> None:
    assert '<a href="report.html">' in (site / "index.html").read_text()
    assert "make docs" in (site / "report.html").read_text()  # which puts the real one in its place
    made = (ROOT / "Makefile").read_text().split("\ndocs:")[1].split("\n\n")[0]
    assert "backsweep report results --out site/report.html" in made


def test_search_knows_all_pages_also_from_disk(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    places = {entry["location"].split("#")[0] for entry in index["docs"]}
    assert {"get_started.html", "reference/replay.html", "contributing.html", "changelog.html"} <= places
    script = (site / "search" / "search_index.js").read_text()
    assert json.loads(script.removeprefix("var __index = ")) == index
    page = (site / "get_started.html").read_text()
    assert page.index("search/from_disk.js") < page.index("assets/javascripts/bundle")
    (worker,) = site.glob("assets/javascripts/workers/search.*.js")
    assert json.dumps(worker.read_text()) in (site / "search" / "from_disk.js").read_text()


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert project["version"] == citation["version"] == backsweep.__version__
    assert f"## {backsweep.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()
    (paper,) = citation["references"]
    assert paper["url"] in project["urls"].values()


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
