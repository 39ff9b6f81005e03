"""The providers of standards that are shipped: whole files by layer, and single rules."""
