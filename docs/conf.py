"""How the documentation site is built: ``make docs``, offline, warnings as errors."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from sphinx_gallery.sorting import ExplicitOrder

import conformal_gp

project = "conformal-gp"
author = "The conformal-gp developers"
release = conformal_gp.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx_design",
    "mathml",
    "command_help",
    "figures",
    "sample_report",
]
exclude_patterns = ["_ext", "figures"]

# Pages
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
templates_path = ["_templates"]

# API reference: types stand in the docstrings, so signatures do without
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {
    # written by scikit-learn onto every estimator, for its metadata routing
    "exclude-members": "set_fit_request, set_partial_fit_request, set_predict_request, set_score_request"
}
suppress_warnings = ["ref.python"]  # parameters called y, and attributes of that name in two classes
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]  # keeps the underscore at the end of their names

# Examples: every script is run
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "backreferences_dir": "gallery/used",
    "doc_module": ("conformal_gp",),
    "capture_repr": (),  # what is worth showing is printed
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "image_srcset": ["2x"],
    "reference_url": {},
    "within_subsection_order": ExplicitOrder(
        [
            "first_intervals.py",
            "wrong_error_bars.py",
            "standard_gps.py",
            "difficulty.py",
            "simulator.py",
            "p_values.py",
            "shift.py",
            "*",
        ]
    ),
}

# Appearance
html_theme = "furo"
html_title = f"conformal-gp {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
