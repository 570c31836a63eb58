"""A real OpenStack control plane on one machine, for development and tests.

Real services, database, message queue and OVN; only hypervisors, disks and chassis are
pretended.  Standard library only: this program installs everything else.
"""
