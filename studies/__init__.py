"""Long studies whose results are committed under docs/; never part of the tests."""
