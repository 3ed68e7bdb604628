"""The paper's questions as data: what each asks, which runs answer it, and the rule that decides."""
