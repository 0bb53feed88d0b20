"""Settings of the documentation: ``sphinx-build -W docs docs/_build``."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_ext"), str(ROOT)]

import mmbench  # noqa: E402

# examples use data of scikit-learn, and run with one BLAS thread, as jobs do
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

project = "mmbench"
author = "The mmbench developers"
copyright = author
version = release = mmbench.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "beside",
    "browser",
    "cards",
    "columns",
    "commands",
    "mathml",
    "pictures",
    "peers",
    "measured",
    "published",
    "sliders",
    "thumbnails",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.md5"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

# `name` in a docstring links to the page of the name; quotes stay straight, so code can be copied
default_role = "py:obj"
smartquotes_action = "De"

autosummary_generate = True
autosummary_context = {
    "pages": {
        **dict.fromkeys(("LDA", "MPM", "MEMPM", "M4"), "minimax"),
        **dict.fromkeys(("RSVMPlus", "RSVMMuPlus", "MRSVM"), "radius"),
        **dict.fromkeys(("KLDA", "LSSVM"), "least_squares"),
        "SigmaSVM": "sigma_svm",
    },
}
autodoc_preserve_defaults = True
autodoc_typehints = "none"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples")],
    "gallery_dirs": ["gallery"],
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "show_memory": False,
    # pages of computation times load scripts from another server
    "write_computation_times": False,
    # the HTML of last expressions is shown in addition to the printed text
    "capture_repr": ("_repr_html_",),
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "mmbench"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["mmbench.css"]
html_js_files = ["mmbench.js", "sliders.js"]
html_search_scorer = str(HERE / "_ext" / "scorer.js")  # an absolute path is needed
# without a default mode, the theme logs a warning
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {"text": "mmbench"},
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "navbar_end": ["search-button", "theme-switcher"],
    "navbar_persistent": [],
    # pages that are not listed have wide tables, which need the whole width
    "secondary_sidebar_items": {
        page: ["page-toc"]
        for page in (
            *("start", "own_table", "python", "experiments", "data", "compare", "reports"),
            *("certify", "limits", "cluster", "certificates", "estimators", "generated/*"),
        )
    },
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["licence"],
}
