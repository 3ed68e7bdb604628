"""Tables in which each distinct record is kept once."""
