"""JSON Schemas of the files people write, for editors; made from the models that read them."""
