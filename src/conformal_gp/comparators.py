"""The methods that the paper compares with have left the package: an import says where they are."""

raise ImportError(
    "conformal_gp.comparators has moved out of the package: the methods are in reproduction/comparators of the source "
    "repository, https://github.com/conformal-gp/conformal-gp."
)
