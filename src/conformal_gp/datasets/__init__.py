"""Data sets: four benchmarks that come with the package, and artificial data from a Gaussian process."""

from conformal_gp.datasets._artificial import make_gp_data
from conformal_gp.datasets._loaders import load_auto_mpg, load_boston, load_cpu, load_servo

__all__ = ["load_auto_mpg", "load_boston", "load_cpu", "load_servo", "make_gp_data"]
