"""The processes of one run: how they start, meet, share work and hold a model together."""
