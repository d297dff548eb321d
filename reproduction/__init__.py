"""The evaluation of Papadopoulos (2024), run again: every method, table, figure and claim, and studies beyond it."""
