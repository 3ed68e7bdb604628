"""Kernels that are compiled for other kernels only, which takes less than half as long.

numba turns every kernel into machine code, together with a copy of all that it calls. A kernel's caller does not use
that machine code: it takes a copy of the LLVM code, and optimises and translates the whole again. So a kernel that is
called five levels below the one that Python calls was translated six times, and one of them is used.

Here a kernel that is compiled because another one calls it ends as LLVM code, a *part*. The kernel that Python calls is
optimised and translated once, with all of its parts. A part has no code to be called by Python; if Python does call
that kernel, it is compiled in full.
"""

# numba is not typed.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary


class _NoEnvironments:
    """A code generator for which there is no machine code whose environment could be set."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: `set_environments` does it for the kernel that the part becomes a part of."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)


class PartLibrary(JITCodeLibrary):
    """numba's library of a compiled function, without optimised and without machine code."""

    @property
    def codegen(self) -> Any:
        """The code generator, which has none of this library's code."""
        return _NoEnvironments(self._codegen)

    def _optimize_final_module(self) -> None:
        """Leave it to the kernel that Python calls."""

    def _finalize_final_module(self) -> None:
        """Make the code ready to be copied; numba would translate it here."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function in machine code: none has any."""
        self._ensure_finalized()
        return 0

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        """Take the LLVM code from a file that has both."""
        name, _, (_, shared) = state
        library = cls(codegen, name)
        library._shared_module = binding.parse_bitcode(shared)
        library._finalized = True
        return library


def is_part(result: Any) -> bool:
    """Return whether what numba compiled is a part."""
    return isinstance(result.library, PartLibrary)


@contextlib.contextmanager
def libraries_of(context: Any, part: bool) -> Iterator[None]:
    """Make parts, or else whole kernels, of what is compiled within the block; numba's lock must be held."""
    codegen = context.codegen()
    before = codegen._library_class
    codegen._library_class = PartLibrary if part else JITCodeLibrary
    try:
        yield
    finally:
        codegen._library_class = before


def set_environments(result: Any) -> None:
    """Give the parts of a kernel that was just compiled what numba gives every function that it translates."""
    for environment in result._find_referenced_environments():
        result.library.codegen.set_env(environment.env_name, environment)
