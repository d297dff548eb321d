"""From a fitted Gaussian process, or several, to regions and p-values of new rows."""
