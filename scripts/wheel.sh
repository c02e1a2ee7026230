#!/usr/bin/env bash
# Builds the wheel, installs it in a fresh virtual environment, and runs the main job and the tests of the Python module with it;
# checks the types of the module.
#
#   scripts/wheel.sh                      as a release
#   scripts/wheel.sh --profile dev        quicker to build; further arguments go to `maturin build`
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
profile=(--release)
[ $# -gt 0 ] && profile=("$@")

python3 -m venv "$folder/build"
"$folder/build/bin/python" -m pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
"$folder/build/bin/maturin" build --quiet "${profile[@]}" --out "$folder/wheels"

"$folder/build/bin/python" -m pip install --quiet --disable-pip-version-check mypy
"$folder/build/bin/mypy" --strict --ignore-missing-imports python/nigh
MYPYPATH=python "$folder/build/bin/mypy" --strict --ignore-missing-imports tests/python/test_live.py

python3 -m venv "$folder/fresh"
wheel=("$folder"/wheels/nigh-*.whl)
"$folder/fresh/bin/python" -m pip install --quiet --disable-pip-version-check "${wheel[0]}[tables]"
"$folder/fresh/bin/nigh" run jobs/example.toml --quiet --store "$folder/store"
"$folder/fresh/bin/nigh" show "$folder/store" | head -n 6
"$folder/fresh/bin/python" tests/python/test_nigh.py
"$folder/fresh/bin/python" tests/python/test_live.py

# Type checkers see the module as it is installed, beside what gives rows to it. (The suite runs tests/python/test_memory.py and its neighbours.)
if "$folder/fresh/bin/python" -m pip install --quiet --disable-pip-version-check pandas polars datasets; then
    "$folder/build/bin/mypy" --strict --ignore-missing-imports --python-executable "$folder/fresh/bin/python" tests/python/types_of_nigh.py
    # pyright checks files below the folder that it is started in, and fetches itself from npm when it first runs.
    "$folder/build/bin/python" -m pip install --quiet --disable-pip-version-check pyright
    if "$folder/build/bin/pyright" --version >/dev/null 2>&1; then
        "$folder/build/bin/pyright" --pythonpath "$folder/fresh/bin/python" tests/python/types_of_nigh.py
    else
        echo "CI: pyright could not be fetched: only mypy has checked the types of the installed wheel"
    fi
else
    echo "CI: packages that give rows could not be installed: the types of the installed wheel are not checked"
fi
echo "wheel: $(basename "${wheel[0]}") ($(du -h "${wheel[0]}" | cut -f1)) was installed, ran the main job and passed its tests"
