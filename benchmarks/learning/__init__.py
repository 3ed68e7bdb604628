"""Learning checks: the same algorithm of a framework with its own buffer and with backsweep's, one module for each."""
