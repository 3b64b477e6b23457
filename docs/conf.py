"""Settings of Sphinx for the documentation site, which `make docs` builds without a network connection."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

project = "truerank"
author = "the truerank authors"
copyright = f"2026, {author}"  # noqa: A001
version = release = installed_version("truerank")

sys.path.append(str(Path(__file__).with_name("extensions")))

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "mathml",  # docs/extensions; Sphinx itself would load MathJax from the network
    "readable",
    "search_terms",
]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
default_role = "py:obj"
html_math_renderer = "mathml"

autodoc_typehints = "none"  # the docstrings say more than the annotations
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = True
toc_object_entries_show_parents = "hide"
autosummary_generate = False
numpydoc_show_class_members = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "truerank"
html_static_path = ["_static"]
html_extra_path = ["extra"]  # the explorer, which `make docs` writes
html_css_files = ["truerank.css"]
html_js_files = ["search.js"]
html_copy_source = False
html_theme_options = {
    "logo": {"text": "truerank"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": []}
