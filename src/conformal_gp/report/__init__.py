"""A self-contained HTML page about a data set, a model and the coverage of its intervals."""

from conformal_gp.report.page import build_report

__all__ = ["build_report"]
