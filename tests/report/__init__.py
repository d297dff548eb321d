"""Tests of the report page; a package so that its fixtures are its own."""
