"""backsweep inside other people's frameworks: one module for each, which alone imports it."""
