"""The paper's claims: a question for each, the evidence for it, and the rule that decides."""
