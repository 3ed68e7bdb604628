"""The questions as data, by what answers them; each module defines QUESTIONS."""
