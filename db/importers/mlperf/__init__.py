"""MLPerf Inference results trees (MLCommons, Apache-2.0) as run records, right to the digit.

One LoadGen summary becomes one run: LoadGen writes a summary per execution, and a run id made from the summary's own files
stays the same whether a part of a tree is imported or all of it.
"""
