"""Workers, and how runs are handed over to them, with or without Temporal."""
