"""Without its framework, an adapter says what to install."""

from __future__ import annotations

import builtins
import importlib
import sys
from typing import Any

import pytest

EXTRAS = {
    "stable_baselines3": "stable-baselines3",
    "tianshou": "tianshou",
    "torchrl": "torchrl",
    "rllib": "rllib",
    "ray": "ray",
}
"""The extra of each adapter."""


@pytest.mark.parametrize("adapter", EXTRAS)
def test_an_adapter_names_its_extra(adapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frameworks = {"stable_baselines3", "tianshou", "torchrl", "ray"}
    real = builtins.__import__

    def without_frameworks(name: str, *arguments: Any, **options: Any) -> Any:
        if name.partition(".")[0] in frameworks:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *arguments, **options)

    module = f"backsweep.integrations.{adapter}"
    for known in [name for name in sys.modules if name == module or name.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setattr(builtins, "__import__", without_frameworks)
    with pytest.raises(ImportError) as error:
        importlib.import_module(module)
    assert f"{module} needs" in str(error.value)
    assert f"pip install 'backsweep[{EXTRAS[adapter]}]'" in str(error.value)
