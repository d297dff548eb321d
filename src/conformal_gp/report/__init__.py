"""One self-contained HTML page about a data set, a model and how well its intervals held."""

from conformal_gp.report.build import build_report

__all__ = ["build_report"]
