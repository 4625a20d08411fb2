"""``python -m cradle_lib.cli``: the command, for a launcher that starts modules."""

from cradle_lib.cli.main import main

main()
