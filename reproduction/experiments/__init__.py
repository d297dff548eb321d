"""The evaluation of Papadopoulos (2024), run again: every data set, every method, every table and figure."""
