"""unpoison where people already work: one module for each package, imported by its name.

``pandas``, ``huggingface`` and ``torch`` take data in the package's own form and give it back; ``art`` and
``cleanlab`` are plug-ins for those packages. Samplers of imbalanced-learn need none:
``IncompatibilityClustering`` is one.
"""
