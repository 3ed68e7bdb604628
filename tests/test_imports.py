"""Imports only point down the list of layers, and optional packages are only imported where they are used."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from backsweep import run_files
from backsweep.jit import compilation
from backsweep.jit.kernel_cache import COMPILED

SOURCE = Path(__file__).parent.parent / "src" / "backsweep"

LAYERS = [
    *("trees", "types", "checks", "cores", "machine_memory", "run_files", "signals"),
    *("jit", "snapshot", "record_files", "encoding", "store", "graph", "store.ingest_kernels", "store.ingest", "sweep"),
    *("planning", "samplers"),
    *("configuration", "replay", "saving", "minari_data", "integrations", "testing", "tasks", "inspection", "view"),
    *("agent.learner", "agent.config", "agent.settings", "agent.methods", "agent.defaults", "agent.fleet"),
    *("agent.palette", "agent.session", "agent", "agent.session.cli", "view.cli"),
    *("lab.seeds", "lab.records", "lab.stats", "lab.studies", "lab.claims", "lab.runs", "lab.report", "lab.show"),
    *("lab.cli", "lab"),
    *("demo", "compile_ahead", "cli", "__main__"),
]
"""A module belongs to the longest name that its own begins with; it may import from that layer and those before."""

LAZY = {("replay", "saving"), ("replay", "minari_data"), ("replay", "view")}
"""Where a layer imports a later one inside a function: methods of Replay whose work is done elsewhere."""

REQUIRED = {"numpy", "numba", "llvmlite", "gymnasium", "xxhash", "safetensors", "backsweep"}  # llvmlite is numba's
AT_HOME = {
    "agent.learner": {"torch", "triton"},
    "agent.config": {"tyro"},
    "agent.fleet": {"torch"},
    "agent.session": {"torch", "tyro", "rich", "PIL"},
    "lab.runs": {"rich"},
}
"""Layers that are about an optional package and useless without it."""


def layer_of(module: str) -> str | None:
    """Return the layer of a module given by its name below `backsweep`; None for the package itself."""
    parts = module.split(".")
    names = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((name for name in names if name in LAYERS), None)


@dataclass(frozen=True)
class Import:
    """One import statement."""

    file: str
    line: int
    layer: str | None
    module: str
    at_top: bool
    """Carried out when the file is imported, rather than inside a function or for type checkers alone."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def imports_of(path: Path) -> Iterator[Import]:
    relative = path.relative_to(SOURCE)
    layer = layer_of(".".join(relative.with_suffix("").parts).removesuffix(".__init__"))

    def visit(node: ast.AST, at_top: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for name in node.names:
                yield Import(str(relative), node.lineno, layer, name.name, at_top)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{relative}:{node.lineno}: write imports out in full"
            assert node.module is not None
            # "from backsweep.a import b" may name a module.
            for name in node.names:
                below = SOURCE.parent.joinpath(*node.module.split("."), name.name)
                is_module = below.is_dir() or below.with_suffix(".py").exists()
                module = f"{node.module}.{name.name}" if is_module else node.module
                yield Import(str(relative), node.lineno, layer, module, at_top)
        for child in ast.iter_child_nodes(node):
            inner = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            types_only = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            yield from visit(child, at_top and not inner and not types_only)

    yield from visit(ast.parse(path.read_text()), True)


IMPORTS = [found for path in sorted(SOURCE.rglob("*.py")) for found in imports_of(path)]


def test_every_module_has_a_layer() -> None:
    names = [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in SOURCE.rglob("*.py")]
    assert [name for name in names if layer_of(name) is None] == ["__init__"]


def test_imports_point_down() -> None:
    wrong = []
    for found in IMPORTS:
        package, _, rest = found.module.partition(".")
        if package != "backsweep" or found.layer is None:
            continue
        target = layer_of(rest)
        if target is None:
            # The top level gathers names from all over the library, so only what stands on top of that may use it.
            if LAYERS.index(found.layer) < LAYERS.index("minari_data"):
                wrong.append(str(found))
        elif LAYERS.index(target) > LAYERS.index(found.layer) and (found.at_top or (found.layer, target) not in LAZY):
            wrong.append(str(found))
    assert not wrong, wrong


def test_optional_packages_are_imported_where_they_are_used() -> None:
    wrong = [
        str(found)
        for found in IMPORTS
        if found.at_top
        and (package := found.module.split(".")[0]) not in REQUIRED | set(sys.stdlib_module_names)
        and found.layer != "integrations"
        and package not in AT_HOME.get(found.layer or "", set())
    ]
    assert not wrong, wrong


DECORATORS = {
    node.name
    for node in ast.parse(Path(compilation.__file__).read_text()).body
    if isinstance(node, ast.FunctionDef) and "numba.njit" in ast.unparse(node)
}


def compiles(path: Path) -> bool:
    """Say whether a file makes compiled code: it imports numba, or uses one of our decorators."""
    tree = ast.parse(path.read_text())
    used = {
        ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator).split(".")[-1]
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
    }
    return bool(used & DECORATORS) or any(found.module.split(".")[0] == "numba" for found in imports_of(path))


def test_compiled_code_is_in_files_that_name_the_cache() -> None:
    """The cache of compiled kernels is named after the contents of these files alone."""
    assert {"kernel", "inlined", "threaded"} == DECORATORS
    found = [path for path in SOURCE.rglob("*.py") if compiles(path)]
    assert len(found) > 20
    wrong = [str(path.relative_to(SOURCE)) for path in found if not any(path.match(name) for name in COMPILED)]
    assert not wrong, wrong


def test_what_compiled_code_imports_names_the_cache_too() -> None:
    """Constants are compiled in, so a file that only has constants counts as well."""
    for path in SOURCE.rglob("*.py"):
        if path.name.endswith("_kernels.py"):
            for found in imports_of(path):
                if found.module.startswith("backsweep."):
                    source = SOURCE.parent / (found.module.replace(".", "/") + ".py")
                    assert any(source.match(name) for name in COMPILED), (path.name, found.module)


MOST_PARAMETERS = {"*_kernels.py": 10, "triton_*.py": 12}


@pytest.mark.parametrize(("files", "most"), MOST_PARAMETERS.items())
def test_kernels_take_bundles_rather_than_long_lists_of_arrays(files: str, most: int) -> None:
    found = {
        f"{path.relative_to(SOURCE)}: {node.name}": len(node.args.args)
        for path in SOURCE.rglob(files)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    assert len(found) > 15
    wrong = {name: count for name, count in found.items() if count > most}
    assert not wrong, wrong


def test_compiled_functions_of_other_files_take_few_arguments_too() -> None:
    found = {
        f"{path.relative_to(SOURCE)}: {node.name}": len(node.args.args)
        for path in SOURCE.rglob("*.py")
        if compiles(path)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.decorator_list
    }
    assert len(found) > 100
    wrong = {name: count for name, count in found.items() if count > MOST_PARAMETERS["*_kernels.py"]}
    assert not wrong, wrong


FAMILIES = ("chain", "minigrid", "sokoban")


def test_modules_of_one_layer_have_different_names() -> None:
    """The packages of the families of tasks are alike on purpose: each has its own `options`, `lanes` and so on."""
    places: dict[tuple[str | None, str], list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[-1] != "__init__" and not set(parts) & set(FAMILIES):
            places.setdefault((layer_of(".".join(parts)), parts[-1]), []).append("/".join(parts))
    wrong = [found for found in places.values() if len(found) > 1]
    assert not wrong, wrong


MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 80


def length(function: ast.FunctionDef) -> int:
    """Count the lines of a function without its docstring."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    return lines - len((ast.get_docstring(function, clean=False) or "").splitlines())


def test_files_and_functions_are_short() -> None:
    wrong = []
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if text.count("\n") > MOST_LINES:
            wrong.append(str(path.relative_to(SOURCE)))
        functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
        wrong += [
            f"{path.relative_to(SOURCE)}: {function.name}"
            for function in functions
            if length(function) > MOST_LINES_OF_A_FUNCTION
        ]
    assert not wrong, wrong


def test_threaded_loops_only_call_kernels() -> None:
    """Elsewhere numba drops writes to arrays that are made inside the loop."""
    loops = [
        (path.name, node)
        for path in SOURCE.rglob("*_kernels.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.For) and ast.unparse(node.iter).startswith("prange(")
    ]
    assert loops
    for name, loop in loops:
        calls = [statement for statement in loop.body if isinstance(statement, ast.Expr)]
        assert len(loop.body) == len(calls) == 1, name
        assert isinstance(calls[0].value, ast.Call), name


def test_the_files_of_a_run_are_named_in_one_place() -> None:
    names = {value for name, value in vars(run_files).items() if name.isupper() and "." in value} - {"manifest.json"}
    assert "records.jsonl" in names
    wrong = [
        f"{path.relative_to(SOURCE)}: {node.value}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in names and path.name != "run_files.py"
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
    optional += ["backsweep.tasks", "backsweep.agent", "backsweep.lab"]
    found = in_fresh_interpreter(
        f"import sys, backsweep\nprint([name for name in {optional!r} if name in sys.modules])"
    )
    assert found.strip() == "[]"


def test_the_learner_imports_its_gpu_kernels_only_when_it_uses_them() -> None:
    found = in_fresh_interpreter(
        "import sys; sys.modules['triton'] = None\n"
        "import backsweep.agent.learner, backsweep.agent.learner.executor\n"
        "print('backsweep.agent.learner.triton' in sys.modules)"
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


def test_what_is_loaded_late_is_found_too() -> None:
    import backsweep

    assert {"inspect_env", "tasks", "Replay"} <= set(dir(backsweep))
    found: dict[str, object] = {}
    exec("from backsweep import *", found)
    assert found["inspect_env"] is backsweep.inspect_env
