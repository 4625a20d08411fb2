"""What makes files that ship, once; no part of the library."""
