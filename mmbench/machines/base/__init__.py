"""The frame of every machine: parameters, one-vs-one, weights, certificates, search spaces."""
