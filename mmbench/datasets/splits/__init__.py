"""Test splits: which rows train and which rows test. One file a rule.

Every split can be made alone: it depends on the data's labels, the rule, the seed, and the numbers
of its repeat and fold. Random numbers come from ``SeedSequence(seed, spawn_key=(repeat,))``, so a
further repeat never alters an earlier one, and all folds of one repeat share one shuffle.
"""
