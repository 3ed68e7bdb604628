"""The paper's claims: a question for each, its evidence, and the rule that decides it."""
