"""``python -m tools.surrogate``: builds the corpus, or, with arguments, runs :mod:`commands`."""

import sys

from tools.surrogate.build import build_surrogate
from tools.surrogate.commands import run

if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(run(sys.argv[1:]))
    build_surrogate()
