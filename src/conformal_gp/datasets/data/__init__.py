"""The bundled data files and their descriptions."""
