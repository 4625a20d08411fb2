#!/bin/sh
# Prints the path of a Python for `.venv`: the given one if its version is supported, otherwise one that
# uv finds on this machine or downloads. FOLDER holds uv meanwhile, if uv is not installed.
# Usage, from the top folder: find_python.sh PYTHON FOLDER
set -u
python=$1 folder=$2
supported='cpython>=3.11,<3.14'

version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null)
case $version in
  3.11.* | 3.12.* | 3.13.*) echo "$python" && exit ;;
  '') found="$python can't be run" ;;
  *) found="$python is Python $version" ;;
esac
echo "$found, and Python 3.11, 3.12 or 3.13 is needed: uv looks for one, or downloads it." >&2

uv=$(command -v uv) || {
  trap 'rm -rf "$folder"' EXIT
  uv=$folder/bin/uv
  { "$python" -m venv "$folder" && "$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
    --require-hashes --no-deps --only-binary :all: --requirement requirements/uv.lock; } >/dev/null 2>&1
}
find() { "$uv" python find --system --no-project "$supported" 2>/dev/null; }
find && exit
reason=$(UV_PYTHON_INSTALL_BIN=0 "$uv" python install "$supported" 2>&1) && find && exit
[ -x "$uv" ] || reason="uv could not be installed"
reason=$(echo "$reason" | sed -n '$s/^ *[a-z]*: //;$p')
echo "error: no supported Python is here, and none could be downloaded (${reason:-uv failed}). Install Python" \
  "3.13 with its venv module (Debian, Ubuntu: python3.13-venv; Homebrew: python@3.13), then run make with" \
  "PYTHON=python3.13; or run it again with a network." >&2
exit 1
