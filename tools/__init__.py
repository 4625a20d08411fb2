"""Programs that generate the shipped files; not part of the library."""
