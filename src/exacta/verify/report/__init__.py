"""Show a verdict: `terminal.py` in short, `page.py` as one HTML file with a timeline for each anomaly."""
