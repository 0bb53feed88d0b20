"""R-SVM+, R-SVMμ+ and MR-SVM: machines with a trade-off between margin and radius of the data."""
