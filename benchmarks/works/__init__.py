"""The works: one file per kind of thing that is measured, each with a function ``run(library, params) -> numbers``."""
