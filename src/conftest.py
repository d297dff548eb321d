"""Modules that cannot be imported without an extra are left out of the doctests where it is missing."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("skpro") else ["conformal_gp/skpro.py"]
