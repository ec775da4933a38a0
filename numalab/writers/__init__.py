"""Tables in the formats of the tools that kernel developers read; `numalab.readers` reads them back."""
