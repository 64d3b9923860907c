"""The paper's method, in numpy: sampling, trimming, ISPL, the votes, self-training, and their pipeline.

Nothing here knows a framework or a file format: a learner takes index arrays and gives loss arrays.
"""
