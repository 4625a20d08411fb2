"""``python -m tools.annotations [FOLDER]`` writes the shipped annotations, byte for byte."""

import sys
from pathlib import Path

from cradle_extras.label_studio.exports import SHIPPED
from tools.annotations.build import build_annotations

folder = Path(*sys.argv[1:2]) if sys.argv[1:] else SHIPPED
written = build_annotations(folder)
sys.stdout.write(f"Wrote {len(written.entries):,} annotations to {folder}.\n")
