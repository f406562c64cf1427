"""Files that are generated: `python -m bindbench.devtools` writes them, `--check` fails with a diff when one is out of date."""
