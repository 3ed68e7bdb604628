"""The paper's offline, tabular study of NChain, exactly: data sets, a table of values, and nothing else."""
