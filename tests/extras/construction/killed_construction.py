"""Constructions that can be killed at any moment; a process of its own for the tests.

Reads one JSON line per start from standard input: ``url`` and ``folder``. Each start is forked
off; its process id is printed when it begins, and its exit status when it has ended.
"""

from __future__ import annotations

import json
import os
import sys

from cradle_extras.construction import construct
from cradle_lib import record
from cradle_lib.detection import Options


def main() -> None:
    record.commit = lambda: ("unknown", False)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 1
            os.dup2(2, 1)
            try:
                construct(
                    writer="openai:stub",
                    base_url=order["url"],
                    out=order["folder"],
                    attempts=2,
                    options=Options(concurrency=3),
                )
                code = 0
            finally:
                os._exit(code)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
