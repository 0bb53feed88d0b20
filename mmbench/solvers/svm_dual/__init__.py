"""The dual of the SVM and of the RMM as one problem class, `PiecewiseQP`, and how it is solved."""
