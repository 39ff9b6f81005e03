"""What a run did, for monitoring: spans, metrics and traces, all computed from its journal."""
