"""What the product tells about itself while it runs: numbers (`metrics.py`) and traces (`traces.py`).

Names of metrics and spans, and the labels of metrics, carry templates only, never an id of a resource, project or region.
"""
