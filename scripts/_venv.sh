# Sourced by the other scripts: a virtual environment in .venv with mmbench installed.
# PYTHON chooses the interpreter; otherwise the first of python3.12, python3.11, python3 that is 3.11 or newer.

find_python() {
    for candidate in ${PYTHON:-python3.12 python3.11 python3.13 python3}; do
        if "$candidate" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "mmbench needs Python 3.11 or newer; set PYTHON to one" >&2
    return 2
}

# setup_venv EXTRAS: create .venv if it is missing, install this checkout with EXTRAS ("" or "[test]"), and
# of the optional packages of "all" those that can be installed or built here.
setup_venv() {
    if ! .venv/bin/python -m pip --version > /dev/null 2>&1; then  # missing, or made in part
        local python
        python=$(find_python) || return 2
        "$python" -m venv .venv || return 2
    fi
    local pip=".venv/bin/python -m pip install --quiet --disable-pip-version-check --editable"
    $pip ".$1" || return 2
    $pip ".[all]" 2> /dev/null && return
    local package missing=""
    while read -r package; do
        .venv/bin/python -m pip install --quiet --disable-pip-version-check "$package" 2> /dev/null ||
            missing="$missing ${package%%[>;]*}"
    done < <(.venv/bin/python -c 'import tomllib
extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]
for extra in extras["all"][0].partition("[")[2].rstrip("]").split(","):
    print(*extras[extra], sep="\n")')
    [ -z "$missing" ] || echo "optional packages that cannot be installed here:$missing" >&2
}
