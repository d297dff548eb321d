"""Does coverage survive tuning? A simulation over kinds of data, numbers of rows and methods."""
