"""Files that exist already: which ones a review is about, and how fixed ones go back."""
