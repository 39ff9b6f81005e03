"""JSON Schemas of the files that users write, for editors; generated from the models."""
