"""The F-SVM."""
