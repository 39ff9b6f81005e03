"""Runs: started, listed, shown, resumed and watched."""
