"""The JSON Schema of contract files, for editors; made from the model that reads them."""
