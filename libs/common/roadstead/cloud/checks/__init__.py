"""The parts of `region check`: what a finding is, what is looked at in a region, in a project, and in depth."""
