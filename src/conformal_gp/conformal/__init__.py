"""From scores that are lines in the candidate label to regions and p-values."""
