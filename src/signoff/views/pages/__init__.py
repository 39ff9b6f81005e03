"""Pages in HTML: the parts of a report, which every surface that shows a review shares."""
