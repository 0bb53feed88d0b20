"""Where the files of a data set come from: the local store, a mirror, or its sources."""
