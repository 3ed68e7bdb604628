"""On a CPU a branch is no branch: everything is done in order."""

from __future__ import annotations

import pytest
import torch

from backsweep.agent.learner.branches import Branch


def test_what_goes_into_a_branch_is_done_in_order() -> None:
    branch, done = Branch(torch.device("cpu")), []
    with branch:
        done.append("beside")
    done.append("meanwhile")
    branch.join()
    branch.join()  # nothing to wait for
    assert done == ["beside", "meanwhile"]


def test_errors_come_through() -> None:
    branch = Branch(torch.device("cpu"))
    with pytest.raises(KeyError), branch:
        raise KeyError("x")
