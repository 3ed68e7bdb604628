"""Imports only point up the list of rooms, and optional packages are only imported where they are used."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from backsweep.compilation import COMPILED

SOURCE = Path(__file__).parent.parent / "src" / "backsweep"

ROOMS = [
    *("types", "compilation", "prefetching", "addresses", "seeding", "memory", "snapshot", "encoding", "store"),
    *("graph", "sweep", "remembering", "samplers", "configuration", "replay", "saving", "minari_data", "envs"),
    *("learner", "lockstep", "evaluation", "records", "trainer", "experiments", "report", "integrations", "testing"),
    *("demo", "compile_ahead", "cli", "__main__"),
]
"""A room may import from those before it."""

LAZY = {("replay", "saving"), ("replay", "minari_data")}
"""Where a room opens the door to a later one inside a function: methods of Replay whose work is done elsewhere."""

REQUIRED = {"numpy", "numba", "llvmlite", "gymnasium", "xxhash", "safetensors", "backsweep"}  # llvmlite is numba's
AT_HOME = {
    "learner": {"torch", "triton"},
    "trainer": {"torch", "tyro", "rich", "PIL"},
    "evaluation": {"torch"},
    "experiments": {"rich"},
}
"""Rooms that are about an optional package and useless without it."""


@dataclass(frozen=True)
class Import:
    """One import statement."""

    file: str
    line: int
    room: str
    module: str
    at_top: bool
    """Carried out when the file is imported, rather than inside a function or for type checkers alone."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def imports_of(path: Path) -> Iterator[Import]:
    relative = path.relative_to(SOURCE)
    room = relative.parts[0].removesuffix(".py")

    def visit(node: ast.AST, at_top: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for name in node.names:
                yield Import(str(relative), node.lineno, room, name.name, at_top)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{relative}:{node.lineno}: write imports out in full"
            assert node.module is not None
            # "from backsweep import x" may name a room.
            whole = [f"backsweep.{name.name}" for name in node.names] if node.module == "backsweep" else [node.module]
            for module in whole:
                yield Import(str(relative), node.lineno, room, module, at_top)
        for child in ast.iter_child_nodes(node):
            inner = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            types_only = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            yield from visit(child, at_top and not inner and not types_only)

    yield from visit(ast.parse(path.read_text()), True)


IMPORTS = [found for path in sorted(SOURCE.rglob("*.py")) for found in imports_of(path)]


def test_every_room_has_its_place() -> None:
    rooms = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert rooms - {"__init__", "__pycache__", "py.typed"} <= set(ROOMS)


def test_imports_point_up_the_list() -> None:
    wrong = []
    for found in IMPORTS:
        parts = found.module.split(".")
        if parts[0] != "backsweep" or found.room == "__init__":
            continue
        target = parts[1] if len(parts) > 1 and parts[1] in ROOMS else "__init__"
        if target == "__init__":
            # The top level gathers names from nearly everywhere, so only the last rooms may stand on it.
            if ROOMS.index(found.room) < ROOMS.index("minari_data"):
                wrong.append(str(found))
        elif ROOMS.index(target) > ROOMS.index(found.room) and (found.at_top or (found.room, target) not in LAZY):
            wrong.append(str(found))
    assert not wrong, wrong


def test_optional_packages_are_imported_where_they_are_used() -> None:
    wrong = [
        str(found)
        for found in IMPORTS
        if found.at_top
        and (package := found.module.split(".")[0]) not in REQUIRED | set(sys.stdlib_module_names)
        and found.room != "integrations"
        and package not in AT_HOME.get(found.room, set())
    ]
    assert not wrong, wrong


def test_kernels_are_compiled_in_files_of_that_name() -> None:
    """The cache of compiled kernels is named after these files alone."""
    wrong = [
        f"{path.relative_to(SOURCE)}"
        for path in SOURCE.rglob("*.py")
        if path.name not in (*COMPILED, "compilation.py")
        and any(
            line.startswith(("@kernel", "@inlined", "@threaded", "@numba", "import numba"))
            for line in path.read_text().splitlines()
        )
    ]
    assert not wrong, wrong


def test_nothing_reads_pickles_or_global_randomness() -> None:
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        names = {found.module.split(".")[0] for found in imports_of(path)}
        assert not names & {"pickle", "dill", "cloudpickle", "joblib", "shelve"}, path
        called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert not called & {"np.random.seed", "np.random.rand", "np.random.randint", "np.load", "torch.load"}, path


def in_fresh_interpreter(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_backsweep_imports_nothing_optional() -> None:
    optional = ["torch", "matplotlib", "networkx", "pandas", "minari", "ale_py", "stable_baselines3"]
    found = in_fresh_interpreter(
        f"import sys, backsweep\nprint([name for name in {optional!r} if name in sys.modules])"
    )
    assert found.strip() == "[]"


def test_the_learner_imports_its_gpu_kernels_only_when_it_uses_them() -> None:
    found = in_fresh_interpreter(
        "import sys; sys.modules['triton'] = None\n"
        "import backsweep.learner, backsweep.learner.stepper\n"
        "print('backsweep.learner.fused' in sys.modules)"
    )
    assert found.strip() == "False"


def test_the_replay_works_without_torch_and_says_what_is_missing() -> None:
    found = in_fresh_interpreter(
        """
import sys
for name in ("torch", "networkx", "matplotlib", "scipy"):
    sys.modules[name] = None  # as if it were not installed
import gymnasium as gym, numpy as np
from backsweep import Mixture, Prioritized, Replay, Topological
sampler = Mixture([(0.5, Topological()), (0.5, Prioritized())])
replay = Replay(gym.spaces.Discrete(5), gym.spaces.Discrete(2), 10, sampler)
for t in range(20):
    replay.add(t % 5, 0, 1.0, (t + 1) % 5, t % 5 == 4, False)
batch = replay.sample(8)
replay.update_priorities(batch.row, batch.reward)
for call in (batch.to_torch, replay.graph.to_networkx):
    try:
        call()
    except ImportError as error:
        print(error)
"""
    )
    assert "pip install 'backsweep[torch]'" in found
    assert "pip install networkx" in found


@pytest.mark.parametrize("name", ["Replay", "Uniform", "Prioritized", "EpisodicBackward", "Topological", "Mixture"])
def test_the_public_names_are_at_the_top_and_documented(name: str) -> None:
    import backsweep

    assert name in backsweep.__all__
    assert getattr(backsweep, name).__doc__
