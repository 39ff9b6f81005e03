"""Files people write by hand: read with their lines, judged by models, answered in words."""
