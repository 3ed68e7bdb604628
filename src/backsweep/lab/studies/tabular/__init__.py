"""The paper's offline, tabular study of NChain, exactly: data sets, a table of values, and nothing else."""

from backsweep.lab.studies.tabular.dataset import ChainData, chain_data
from backsweep.lab.studies.tabular.learner import METHODS, Setting, TableLearner

__all__ = ["METHODS", "ChainData", "Setting", "TableLearner", "chain_data"]
