"""Tests of the pictures; a package so that its fixtures are its own."""
