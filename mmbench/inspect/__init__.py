"""Certificates and geometric quantities of fitted models, whichever package trained them."""
