import pytest
from hypothesis import given

from drive import drive
from strategies import Plan, plans, topological


@pytest.mark.kernels
@given(plans(topological()))
def test_rows_are_those_of_algorithm_1(plan: Plan) -> None:
    drive(plan)
