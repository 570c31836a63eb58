"""The Octavia API beside the original 19.0.0: the same requests in one run on the same machine."""
