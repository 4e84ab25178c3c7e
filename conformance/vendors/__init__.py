"""Libraries of vendors, many in one process: ``make test-vendors``.

Those of PyPI have to be there. Debian's are unpacked into a folder by
`conformance.vendors.debian`; what cannot be downloaded is skipped, and the reason is printed.
"""
