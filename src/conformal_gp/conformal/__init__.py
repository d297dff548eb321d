"""From scores as functions of the candidate value to prediction sets, bounds and p-values."""
