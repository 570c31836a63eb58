"""The one loop that every kind runs in, and the few nouns it is made of.  It knows no OpenStack."""
